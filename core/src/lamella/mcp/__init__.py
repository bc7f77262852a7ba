"""Memory for other programs, over the Model Context Protocol.

`memory` does the work and knows no protocol; `tools` and `resources` put it into the SDK's terms; `server`
makes the server of them; `stdio` and `http` run it. All but `memory` need the extra `lamella[mcp]`.
"""
