"""Signs by which the role of a sentence in a conversation can be told without understanding it.

English and Chinese. Each pattern errs on the side of silence: a sentence without a sign is only
ranked by what it holds.
"""

from __future__ import annotations

import re


def _cues(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|(?:{chinese})", re.IGNORECASE)


CONSTRAINT = _cues(
    r"must(?:n't)?|always|never|do not|don't|only use|prefer(?:s|red)?|make sure|should(?:n't| not)|avoid|"
    r"i (?:like|love|hate|dislike|want)|required?|at most|at least|no more than|keep (?:it|them|the)|without",
    "必须|务必|一定要|不要|不能|不许|禁止|别用|别再|总是|始终|偏好|喜欢|讨厌|希望|要求|最多|至少|不超过|请用|只用|只能|记住",
)
DECISION = _cues(
    r"decided?|decision|let's (?:use|go|keep|take)|we(?:'ll| will) (?:use|go with|keep|take)|go(?:ing)? with|chose|"
    r"chosen|choose|agreed|instead of|rather than|settled on|switch(?:ed|ing)? to|approved",
    "决定|选定|选择了|选用|采用|改用|换成|改成|就用|同意|敲定|确定用|定为|而不是",
)
DONE = _cues(
    r"done|finished|completed?|fixed|added|created|implemented|updated|wrote|written|removed|renamed|moved|"
    r"installed|deployed|merged|published|sent|saved|booked|scheduled|resolved|verified|tests? pass(?:ed|es)?|"
    r"passing|works now",
    "完成|已经|已修|修复了|修好|添加了|新增了|创建了|实现了|更新了|写好|写完|删除了|改好|部署了|合并了|发布了|保存了|预订了|解决了|验证了|通过了|搞定",
)
NEXT = _cues(
    r"next(?: step| we|,)|todo|to do|remaining|still (?:need|have|has|to)|need(?:s)? to|then we|later|"
    r"will (?:need|have) to|plan(?:s|ned)? to|follow[- ]up|by (?:tomorrow|monday|friday|next week)|"
    r"before (?:the )?release",
    "接下来|下一步|待办|还要|还需|还得|需要|然后|之后|以后再|计划|打算|剩下|尚未|明天|下周",
)
IN_PROGRESS = _cues(
    r"in progress|working on|i(?:'m| am) (?:now |still )?(?:\w+ing)|currently|under way|half ?way",
    "正在|进行中|目前在|还在",
)
BLOCKED = _cues(
    r"blocked|stuck|waiting (?:for|on)|cannot|can't|unable to|fails? (?:with|because)|failing|does(?:n't| not) work",
    "卡住|阻塞|等待|无法|不行|失败|报错|做不到|被拒",
)
REQUEST = _cues(
    r"please|can you|could you|would you|help me|i need|we need|how (?:do|can|to)|what|why|where|when|who|which|"
    r"fix|add|write|create|build|make|implement|find|show|explain|check|update|remove|refactor|translate|plan|book",
    "请|帮我|帮忙|能不能|可以吗|怎么|如何|什么|为什么|哪里|谁|修复|添加|写一|创建|实现|检查|更新|删除|翻译|解释|安排|查一下|我要|我想|需要",
)
ABOUT_ONESELF = _cues(
    r"my|i am|i'm|i have|i've|i was|i live|i work|we are|we're|our|call me|named?",
    "我叫|我是|我的|我有|我在|我们|咱们|名字|住在|叫我",
)
FAILURE = re.compile(
    r"^\W*(?:error|fatal|traceback|exception|failed|failure|validation failed|could not|cannot|unable to|"
    r"permission denied|file not found|path not found|no such file|错误|失败|异常|无法)|"
    r"\b(?:exited with code [1-9]\d*|timed out|no such file or directory|permission denied)\b",
    re.IGNORECASE,
)

# What makes a sentence worth quoting: paths, code, addresses, numbers and dates, names in code.
SPECIFIC = re.compile(
    r"`[^`\n]+`|https?://\S+|[\w.+-]+@[\w-]+\.\w+|(?:[\w.~-]+)?/[\w.-]+(?:/[\w.-]*)*|\b[\w-]+\.[a-z][a-z0-9]{0,4}\b|"
    r"\b[a-z]+_[a-z_0-9]+\b|\b[a-z]+[A-Z]\w*\b|\b[A-Z][A-Z0-9_]{2,}\b|\d[\d.,:/-]*|"
    r"[一二三四五六七八九十百千万两]+(?:个|月|日|号|点|块|元|年|岁|天|周|次|人|条)|「[^」]+」|“[^”]+”|\"[^\"\n]+\"",
)
