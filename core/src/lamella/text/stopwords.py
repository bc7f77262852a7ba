"""Words that carry no topic. A search leaves them out of a question, unless nothing else is left.

Own lists, by kind of word. Chinese and Japanese entries of two characters are dropped as bigrams.
"""

from __future__ import annotations

_ENGLISH = """
a an the this that these those each both all any some such same own other more most
and or but if then than so as because while though although
of in on at to for from by with about into over under after before between during through against
is are was were be been being am do does did doing have has had having
will would can could should shall may might must
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
myself ourselves yourself himself herself itself themselves
who whom whose which what when where why how there here
not no nor too very just also only
s t d m ll re ve don didn doesn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain
"""

_CHINESE = """
我们 你们 他们 她们 它们 这个 那个 这些 那些 这里 那里 什么 哪个 哪些 怎么 怎样 为何 多少
因为 所以 如果 或者 以及 并且 而且 但是 可以 可能 应该 已经 曾经 关于 对于 告诉 请问
为什 是什 么来 来着 的那 那个 过的 的是
"""

_JAPANESE = """
です ます した して する いる ある これ それ あれ この その あの どの どれ ここ そこ から まで
ので のに けど でも には では とは なに 何が 何を です でし ませ った てい たか すか のは のが のを
"""

# One character that is only grammar: alone, or beside another such character, it says nothing.
FUNCTION_CHARACTERS = frozenset(
    "的了着过地得吗呢吧啊呀是有在被把给让到去来我你他她它这那哪谁几和与或但而也都就还又再才对请会能要想说はがをにでとのもへやかねよ"
)

STOP_WORDS = frozenset(f"{_ENGLISH} {_CHINESE} {_JAPANESE}".split())
