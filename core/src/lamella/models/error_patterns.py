"""How servers word their errors: the tables behind `lamella.models.classify`.

Patterns meet text that `normalize` prepared: lower case, words apart, and neither underscores nor
hyphens, so that `context_length_exceeded`, `ContextLengthExceeded` and `Context length exceeded`
all read alike. Servers answer in their users' languages too; those lines are kept by language.
"""

from __future__ import annotations

import re

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_JOINERS = re.compile(r"[_\-\s]+")


def normalize(text: str) -> str:
    """Text as the patterns expect it."""
    return _JOINERS.sub(" ", _CAMEL.sub(" ", text)).strip().lower()


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns))


_SIZE = r"(?:length|window|size|limit)"

OVERFLOW = _any_of(
    # context ... exceeded / overflow / too long, in either order
    r"context overflow",
    rf"context {_SIZE}(?: \S+){{0,4}}? (?:exceed|overflow|too (?:long|large|small))",
    r"(?:exceed\w*|(?:greater|larger|longer|more) than|beyond|outside|does not fit)(?: \S+){0,7}? context",
    r"max(?:imum)? (?:model )?(?:context|prompt|input|sequence) (?:length|size|window|tokens?)",
    r"(?:too (?:long|large) for) .{0,60}context",
    r"context length of only",
    r"configured context size",
    # prompt or input too long
    r"(?:prompt|inputs?|messages?|conversation|request(?: entity)?|payload|content)(?: is| are)? too (?:long|large)",
    r"prompt exceeds max length",
    r"input length exceeds",
    r"maximum allowed input length",
    r"request(?: size)? exceeds (?:the )?maximum size",
    r"range of input length should be",
    # token counts
    r"input token count .{0,40}exceeds the maximum",
    r"(?:tokens?|prompt|input)[^.]{0,60} exceeds? the (?:limit|maximum)",
    r"exceed\w* (?:the )?(?:model(?:'s)? )?token limit",
    r"token limit (?:was |is |has been )?exceeded",
    r"model token limit",
    r"too many (?:input |prompt )?tokens",
    r"reduce the (?:length|size|number) of (?:the |your )?(?:messages|prompt|input|tokens|conversation)",
    # Chinese, Japanese, Korean
    r"上下文.{0,12}(?:超|过长|過長|太长|太長|溢出)",
    r"超(?:出|过|過).{0,16}上下文",
    r"(?:压缩|壓縮|缩短|縮短|减少|減少)上下文",
    r"(?:输入|輸入|提示词?|提示詞).{0,10}(?:过长|過長|太长|太長|超过最大|超出最大|超過最大)",
    r"コンテキスト.{0,12}(?:超え|超過|長すぎ)",
    r"(?:プロンプト|入力)(?:が|は).{0,8}長すぎ",
    r"컨텍스트.{0,16}(?:초과|너무)",
    r"(?:프롬프트|입력)[이가은는] 너무 (?:깁|길)",
    # European languages
    r"kontext(?:fenster|länge|größe|limit)?.{0,40}(?:überschr|zu (?:lang|groß))",
    r"überschreite\w*.{0,40}kontext",
    r"contexte.{0,40}(?:dépass|trop long)",
    r"dépass\w*.{0,40}contexte",
    r"context[oe].{0,40}(?:exced|excede|supera|ultrapass|demasiado|muito long|troppo lung)",
    r"(?:exced|supera|ultrapass|ecced)\w*.{0,40}(?:contexto|contesto)",
    r"контекст\w*.{0,40}(?:превы|слишком)",
    r"превы\w*.{0,40}контекст",
)

# A limit on the reply, or on something that is no text: shrinking the history would not help.
NOT_OVERFLOW = _any_of(
    r"output tokens?",
    r"max (?:completion|output|new) tokens",
    r"(?:image|file|audio|video|pdf|document)s? .{0,20}(?:exceed|too large)",
)

# The model, its options or the account are refused, whatever else is said of the context.
REFUSED = _any_of(
    r"context (?:window|length|size)(?: \S+){0,4}? too small",
    r"(?:unknown|unsupported|unrecogni[sz]ed) (?:option|parameter|argument|field|key)",
    r"reasoning is (?:required|mandatory)|requires? reasoning|reasoning cannot be disabled",
)

# Words of a model. A 413 without any may come from a proxy that counts bytes.
ABOUT_TOKENS = _any_of(r"context", r"token", r"prompt", r"上下文", r"コンテキスト", r"컨텍스트")

# What the request took, as servers tell it: "213,462 tokens > 200,000 maximum".
OBSERVED = _any_of(
    r"too (?:long|large|many)[^0-9]{0,30}(?P<a>[\d,._]*\d) tokens",
    r"(?:requested|resulted in|contains?|has|needs?)(?: about)? (?P<b>[\d,._]*\d) tokens",
    r"(?:input|prompt|request)[^0-9]{0,30}\((?P<c>[\d,._]*\d)(?: tokens)?\)",
)

RATE_LIMIT = _any_of(
    r"rate.?limit",
    r"too many requests",
    r"throttl",
    r"per (?:second|minute|min|hour|day)\b",
    r"\b(?:tpm|rpm|tpd|rpd)\b",
    r"requests? .{0,20}too (?:frequent|fast)",
    r"slow down",
    r"频繁|頻繁|限流|请求过多|請求過多|速率限制",
    r"リクエストが多すぎ|レート制限",
    r"요청이 너무 많|속도 제한",
)

QUOTA = _any_of(
    r"insufficient (?:quota|funds|balance|credits?)",
    r"(?:exceeded|exhausted) .{0,30}quota",
    r"quota .{0,20}(?:exceeded|exhausted|reached)",
    r"billing",
    r"credit balance",
    r"out of (?:budget|credits?|funds)",
    r"payment required",
    r"spend(?:ing)? limit|usage limit reached",
    r"余额不足|餘額不足|欠费|额度",
)

# Limits that fill up again within minutes, although the server speaks of a quota.
SHORT_QUOTA = _any_of(r"per (?:second|minute|min)\b", r"\b(?:tpm|rpm)\b")

AUTH = _any_of(
    r"(?:invalid|incorrect|missing|no|expired|wrong|bad) (?:x )?(?:api key|access token|token provided|credentials?)",
    r"api key (?:is |was )?(?:not valid|invalid|missing|expired|required|not found)",
    r"unauthori[sz]ed",
    r"authentication",
    r"permission (?:denied|error)",
    r"unauthenticated",
    r"access denied",
    r"forbidden",
)

TRANSIENT = _any_of(
    r"overload",
    r"\b(?:500|502|503|504|520|522|524|529)\b",
    r"service.?unavailable",
    r"temporarily unavailable",
    r"server.?error",
    r"internal.?error",
    r"bad gateway",
    r"provider returned error",
    r"(?:network|connection|socket|transport|protocol).{0,3}(?:error|refused|lost|reset|closed|aborted|failed|timeout)",
    r"websocket (?:closed|error)",
    r"other side closed",
    r"fetch failed",
    r"upstream connect",
    r"reset before headers",
    r"socket hang up",
    r"ended without",
    r"http2 .{0,30}no response",
    r"incomplete (?:chunked )?read|peer closed",
    r"timed? ?out|timeout",
    r"\bterminated\b",
    r"retry delay",
    r"try again (?:later|in a)",
    r"e(?:connreset|connrefused|connaborted|pipe|timedout|hostunreach|netunreach|ai again)\b",
    r"繁忙|过载|過載|稍后(?:再|重)试|稍後再試",
    r"混み合って|過負荷",
    r"과부하|잠시 후",
)

# Thinking that went back to its model is refused: its text, its signature, or its place in the reply.
# A signature that is missing is none of these, since leaving out more would not help.
THINKING = _any_of(
    r"thinking`? blocks?",
    r"expected `?thinking",
    r"thinking`?\.signature",
    r"(?:invalid|corrupt\w*|malformed) `?thought signature",
    r"thought signature`? (?:is |was )?(?:invalid|not valid|corrupt|malformed)",
    r"'reasoning' was provided without|without its required 'reasoning'",
    r"invalid encrypted content|encrypted content .{0,200}(?:could not|cannot) be",
)

RATE_LIMIT_STATUS = re.compile(r"\b429\b")

# An HTTP status that opens a message: "413 Request Entity Too Large", "Error 400: ...".
LEADING_STATUS = re.compile(r"(?:[a-z]+ )?(?:api )?(?:error|http|status|status code)?[ :(]*([45]\d\d)\b")

NO_BODY = re.compile(r"(?:status code )?\(no body\)")
