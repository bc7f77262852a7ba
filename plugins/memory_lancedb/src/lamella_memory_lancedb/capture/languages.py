"""The signs, language by language. To add a language, add a table; to add a sign, add an alternative.

Each field is a regular expression, matched without regard to case. In languages with spaces it begins
and ends at the edge of a word, unless it says `...` where a word may go on. Signs err on the side of
silence: what is kept stays for years, and what is not kept can be said again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from attrs import define

WORD_GOES_ON = r"\w*"


@define(frozen=True, slots=False)
class Language:
    """The signs of one language, an alternative a line; it goes on in the next while a parenthesis is open.

    `remember`: asks to keep something. `preference`, `decision`, `about` (who the speaker is, what is
    his), `rule` (for all time to come): say something lasting. `nothing`: looks like one of these and is
    chatter. `entity`, `fact`: only for the category. `question`: a sentence that asks, beside a question
    mark. `injection`: tries to steer the model. `spaced`: the language puts spaces between words.
    """

    name: str
    remember: str
    preference: str
    decision: str
    about: str
    rule: str
    injection: str
    entity: str
    fact: str
    nothing: str = ""
    question: str = ""
    spaced: bool = True

    @cached_property
    def remembers(self) -> re.Pattern[str]:
        return self._pattern(self.remember)

    @cached_property
    def lasting(self) -> re.Pattern[str]:
        return self._pattern("\n".join((self.preference, self.decision, self.about, self.rule)))

    @cached_property
    def prefers(self) -> re.Pattern[str]:
        return self._pattern(self.preference)

    @cached_property
    def decides(self) -> re.Pattern[str]:
        return self._pattern(self.decision)

    @cached_property
    def names(self) -> re.Pattern[str]:
        return self._pattern(self.entity)

    @cached_property
    def states(self) -> re.Pattern[str]:
        return self._pattern(self.fact)

    @cached_property
    def says_nothing(self) -> re.Pattern[str]:
        return self._pattern(self.nothing or "(?!)")

    @cached_property
    def asks(self) -> re.Pattern[str]:
        return self._pattern(self.question or "(?!)")

    @cached_property
    def steers(self) -> re.Pattern[str]:
        return self._pattern(self.injection)

    def _pattern(self, text: str) -> re.Pattern[str]:
        joined = "|".join(_alternatives(text))
        if self.spaced:
            joined = rf"(?<!\w)(?:{joined.replace('...', WORD_GOES_ON)})(?!\w)"
        return re.compile(joined, re.IGNORECASE)


def _alternatives(text: str) -> Iterator[str]:
    """The alternatives of a table's field."""
    begun, depth = "", 0
    for line in text.strip().splitlines():
        begun += line.strip()
        depth += line.count("(") - line.count(")")
        if begun and not depth:
            yield begun
            begun = ""


ENGLISH = Language(
    "English",
    remember=r"""
        ^(?:please,? )?(?:always )?remember(?: that|:|,)? (?:my|i|i['’](?:m|ve|ll|d)|we|we['’](?:re|ve|ll)|our)
        ^(?:please,? )?remember(?: that|:) (?:[\w'’-]+ ){1,6}?(?:is|are|has|have|needs?|wants?|must|should)
        ^(?:please,? )remember
        (?:want|need|like) you to remember
        remember (?:this|that|it)(?: for| please|$)
        (?:can|could|would|will) you (?:please )?remember (?:that|my|i|we)
        don['’]t forget(?: that)? (?:my|i|i['’]m|we|our)
        (?:please )?(?:keep in mind|bear in mind|make a note|take note|note down) (?:that|my|of)
        ^(?:please )?note(?: that|:)
        for (?:future reference|the record)
        ^important(?: note)?:""",
    preference=r"""
        (?:i|we)(?: really| also| always| usually| generally| definitely| much| personally)? prefer
        my preference is
        (?:i|we)(?: really| also| still| absolutely| do| always)? (?:like|love|hate|enjoy|dislike|adore
        |can['’]t stand) \w+
        (?:i|we) (?:don['’]t|do not) (?:really )?(?:like|enjoy|eat|drink) \w+
        (?:i['’]m|i am) (?:really |very )?(?:fond of|keen on|not a fan of|a (?:big |huge )?fan of)
        my (?:\w+ ){0,2}favou?rite""",
    decision=r"""
        (?:i|we)(?: have|['’]ve)?(?: just| finally| all)? (?:decided|agreed|chosen|settled) (?:to|on|that|against|for)
        we(?:['’]ll| will)(?: be)? (?:use|using|go with|going with|stick with|stick to|adopt)
        we(?:['’]re| are) going with
        let['’]s (?:use|go with|stick with|stick to|adopt)
        decision:""",
    about=r"""
        (?:(?:^|(?<=[,;:] )|(?<=and )|(?<=but )|(?<=that )|(?<=because )|(?<=way )|(?<=remember ))
        my (?:[\w'’-]+ ){0,3}?[\w'’-]+ (?:is|are|lives?|works? (?:at|as|in|for|from)|starts? (?:at|on|in)
        |(?:has|have) (?:a|an|no|two|three|four|\d+)))
        my name['’]s
        is my (?:\w+ ){0,2}(?:name|number|e-?mail|address|birthday|favou?rite|boss|manager|wife|husband|partner|doctor)
        ^(?:please |you can |just |everyone |people )?calls? me(?! (?:crazy|later|back|when|if|tomorrow|tonight))
        (?:i['’]m|i am) (?:allergic|vegetarian|vegan|lactose|diabetic|left-handed|colou?r-?blind|married|divorced
        |single|based in|originally from|from [a-z]+)
        (?:i['’]m|i am) (?:a|an) (?:[\w-]+ ){0,2}(?:engineer|developer|teacher|doctor|nurse|student|designer|writer
        |lawyer|artist|musician|manager|scientist|researcher|chef|vegetarian|vegan|parent|father|mother)
        i (?:live|work|study|grew up|was born|moved|volunteer) (?:in|at|as|for|to|on|with|from)
        i have (?:a|an|two|three|four|\d+) (?:[\w-]+ ){0,2}(?:allergy|sons?|daughters?|kids?|child|children
        |dogs?|cats?|brothers?|sisters?)""",
    rule=r"""
        ^(?:please )?(?:always|never) (?:use|write|answer|reply|respond|ask|check|run|call|add|include|keep|put|format
        |explain|show|speak|talk|send|start|end|prefer|test|commit|push|deploy|delete|touch|change|tell|give|make
        |mention|assume|quote|cite|translate|address|sign|suggest|recommend|schedule|book|order|buy)
        (?:you (?:should|must)|please) (?:always|never)
        (?:i|we) (?:always|never) (?:want|use|write|eat|drink|work|take|go|buy|sleep|get up|wake up|travel|fly|answer
        |reply|deploy|commit|test|wear|smoke|read)
        from now on
        (?:going forward|in (?:the )?future),
        whenever i (?:ask|say|write)
        every time i (?:ask|say|write)""",
    nothing=r"""
        (?:like|love|loved|enjoy|hate|adore) (?:it|this|that|these|those|them|you|your|how|what|when|the way|the idea
        |hearing|seeing|to hear|to see|her|his|their|all the|so much|was|is|and|but|being|not|the|making)
        (?:like|love|enjoy) to$
        why (?:i|we)
        one of my favou?rite
        i (?:think|guess)(?: that)? i['’]ll
        my (?:[\w'’-]+ ){0,3}?[\w'’-]+ (?:is|are|has|have)(?: been)? (?:\w+ing|just|so|finally
        |almost|always|like|important|a constant|awesome|amazing|great|super|everything|my|there|really
        |here|good|fine|much)
        love the [\w ]{0,30}(?:photo|picture|pic|colou?rs?|look|view|vibe|idea|energy|setup|design)
        (?:what|everyone|everything|anything|people|things|something|those|that
        |which) (?:i|we)(?: both)?(?: really)? (?:like|love|enjoy|hate)
        my (?:[\w-]+ )?(?:heart|mind|pleasure|bad|fault|jaw|day|week|weekend|goodness|god|gosh|thoughts|condolences
        |guess|point|question|turn|hope|life|side|spirits?|mood|journey|dream|hard work|work|words|actions?|advice
        |experience|support|trip|motivation) (?:is|are|was|were|has|have)
        (?:is|are|was) my (?:pleasure|motivation|rock|world)
        (?:i['’]m|i am)(?: always)? here (?:for|to|if|whenever)
        always here (?:for|to|if)
        anything is possible|small things|take care of yourself|you(?:['’]ve)? got this|proud of you
        (?:makes?|made|reminds?|helps?|helped) (?:me|us|you)(?: to)? remember
        (?:i want|i need|i['’]d like) you to(?! remember)""",
    question=r"^(?:do|does|did|are|is|was|were|can|could|would|will|should|have|has|what|who|where|when|why|how|which)",
    injection=r"""
        (?:(?:ignore|disregard|forget|override) (?:\w+ ){0,3}(?:all|any|previous|above|prior|earlier|preceding|your)
        (?: \w+){0,3} (?:instructions?|prompts?|rules|messages?|guidelines|directives))
        (?:ignore|disregard) (?:all|any|previous|above|prior) instructions
        (?:ignore|disregard|forget) (?:everything|anything|whatever|all|what
        )(?: \w+){0,4}? (?:told|instructed|said|above|before)
        do not follow (?:the )?(?:system|developer)
        (?:do not|don['’]t|stop|never) follow(?:ing)? (?:\w+ ){0,3}(?:instructions|rules|guidelines)
        new (?:\w+ )?instructions?:
        (?:system|developer) (?:prompt|message|instructions?)
        you are now (?:a|an|in|no longer|free|not|dan|unrestricted|jailbroken)
        (?:reveal|print|show|repeat) (?:your|the) (?:system|hidden|initial) (?:prompt|instructions?)
        (?:run|execute|call|invoke)\b.{0,40}\b(?:tool|command)s?""",
    entity=r"phone|e-?mail|address|called|named|name|number|birthday|account",
    fact=r"is|are|was|were|has|have|lives?|works?",
)

CHINESE = Language(
    "Chinese",
    remember=r"""
        [请請]?(?:帮我|幫我)?(?:记住|記住|记下|記下|记一下|記一下|牢记|牢記)
        (?:^|[，,。])[请請]?(?:你)?(?:记得|記得)(?!吗|嗎|吧|.{0,15}[?？])
        别忘|別忘|不要忘记|不要忘記
        (?:^|(?<=[，,。]))重要(?:的是|事项|提醒)?[:：]""",
    preference=r"""
        (?:我(?:们|們)?(?:还|也|就|都|很|最|比较|比較|更|特别|特別|非常|挺|蛮|一直|平时|平時|不|不太|不怎么|不怎麼|真的|从小){0,3}
        (?:喜欢|喜歡|偏好|偏爱|偏愛|讨厌|討厭|爱吃|愛吃|爱喝|愛喝|爱看|愛看|爱听|愛聽|习惯|習慣|倾向))
        我(?:从来|一直|都)?(?:不吃|不喝|不用|忌口)""",
    decision=r"""
        (?:我|我们|我們|咱们|咱們|已经|已經|最后|最後|最终|最終|会上)(?:已经|已經|最后|最终|一致)?(?:决定|決定|选定|選定|敲定|商定)
        (?:改用|采用|採用|就用|换成|換成).{2,}
        决定(?:用|采用|改|把|在|去|不)""",
    about=r"""
        (?:^|(?<=[，,。；;：: ]))我的[^，,。!！?？的]{1,12}?(?:是|叫|为|為|在)
        我叫(?!了|他|她|它)
        (?:叫我|称呼我|稱呼我)(?!去|来|帮)
        我(?:现在|目前|一直)?(?:住在?|家在|出生在|来自|來自|毕业于|畢業於)
        我(?:现在|目前)?在[^，,。找想思考虑]{1,12}(?:工作|上班|读书|讀書|上学|上學)
        我(?:今年\d+岁|的职业)
        我是(?:一名|一个|一位|个|名|做)?[^，,。!！?？]{0,10}(?:师|師|生|员|員|者|工|人|家|律师|爸|妈)(?:[，,。!！]|$)
        我?对[^，,。]{1,12}过敏|我?對[^，,。]{1,12}過敏
        我(?:有|养了|養了)[^，,。]{0,6}(?:孩子|儿子|女儿|兒子|女兒|狗|猫|貓|过敏|哥哥|姐姐|弟弟|妹妹)""",
    rule=r"""
        以后(?:都|请|請|一律|不要|别|別|回答|凡是|每次)|以後(?:都|請|一律|不要|別|回答|凡是|每次)
        今后|今後|从现在(?:起|开始)|從現在(?:起|開始)|从今(?:天|往后)
        (?:^|[，,。]|我|请|請)(?:总是|總是|从不|從不|从来不|從來不|一律|永远不要|永遠不要|永远别)""",
    nothing=r"""
        (?:喜欢|喜歡|爱|愛)(?:这个|這個|那个|那個|这张|這張|你的|你们|你說|你说)
        我的(?:天|妈呀|意思|问题|問題|错|錯)""",
    question=r"(?:吗|嗎|呢|么)$|^(?:什么|怎么|为什么|谁|哪)",
    injection=r"""
        (?:(?:忽略|无视|無視|忘记|忘記|忘掉|不要(?:再)?(?:理会|遵守|遵循|听从|聽從|服从)|跳过|跳過).{0,8}
        (?:指令|指示|提示|规则|規則|要求|设定|設定|命令|限制))
        新的?(?:系统|系統)?(?:指令|指示)[:：]
        (?:系统|系統)(?:提示词?|提示詞|消息|指令)
        (?:开发者|開發者|开发人员)(?:消息|訊息|指令|模式)
        你现在是(?!.{0,4}(?:几|什么))|你現在是|从现在起你(?:是|将)
        (?:执行|執行|运行|運行|调用|調用).{0,20}(?:工具|命令|指令|脚本|腳本)""",
    entity=r"叫|电话|電話|手机|手機|邮箱|郵箱|地址|名字|生日|号码|號碼|账号",
    fact=r"是|有|在|住",
    spaced=False,
)

JAPANESE = Language(
    "Japanese",
    remember=r"""
        覚えて(?:おいて|おけ|ください|下さい|くれ|ね|て)
        忘れないで
        (?:メモ|記録)して(?:おいて|ください|下さい|ね)
        重要[:：、]""",
    preference=r"""
        (?:が|は|の方が|のほうが)(?:一番|とても|大|本当に|あまり)?(?:好き|苦手|嫌い|きらい|大好き|大嫌い|得意|好み|いい)(?:です|だ|。|！|$|な)
        を好(?:みます|む|んで)""",
    decision=r"""
        (?:に|と|ことに)(?:決めた|決めました|決まりました|決定しました|決定)
        することにし(?:た|ました|ます)
        を(?:使う|採用する)こと(?:に|と)""",
    about=r"""
        (?:私|僕|俺|わたし|うち)の[^、。]{1,15}は
        (?:私|僕|俺|わたし)は[^、。]{1,20}(?:です|だ|アレルギー|に住んで|で働いて|出身)
        (?:名前|誕生日|電話番号|住所)は
        と呼んで(?:ください|ね)?
        アレルギー(?:です|が(?:あ|有)|持ち)""",
    rule=r"""
        (?:今後|これから|今から)は?、?.{2,}(?:して|使って|答えて|しないで|ください)
        (?:いつも|常に|必ず|絶対に).{2,}(?:して|使って|答えて|しないで|ください|します|している)""",
    question=r"(?:か|かな|の|っけ)$",
    injection=r"""
        (?:以前|これまで|上記|前|すべて|全て|全部)の?.{0,6}(?:指示|命令|プロンプト|ルール|指令).{0,4}(?:無視|忘れ|従わな)
        (?:指示|命令|プロンプト|ルール)を(?:全て|すべて)?(?:無視|忘れ)
        (?:指示|命令|ルール)に(?:は)?従わない|新しい(?:指示|命令|プロンプト)[:：]
        システム(?:プロンプト|メッセージ)
        開発者(?:メッセージ|モード)
        (?:ツール|コマンド|スクリプト)を.{0,10}(?:実行|呼び出)|実行.{0,15}(?:ツール|コマンド)""",
    entity=r"名前|電話|メール|住所|誕生日|番号|と呼",
    fact=r"です|である|います|あります|住んで",
    spaced=False,
)

KOREAN = Language(
    "Korean",
    remember=r"""
        기억해|기억하(?:세요|십시오|고|렴)
        잊지\s?(?:마|말)
        (?:메모|기록)해
        중요[:：,]""",
    preference=r"""
        (?:을|를|이|가|은|는|게)?\s?(?:더|제일|가장|정말|아주|별로|안)?\s?(?:좋아(?:해|합|한|하)|싫어(?:해|합|한|하)|선호(?:해|합|한|하))
        (?:을|를)\s?(?:안|못)\s?(?:먹|마시)""",
    decision=r"""
        기로\s?(?:했|결정|정했|합의)
        (?:으로|로)\s?(?:결정|정했|확정)
        결정했""",
    about=r"""
        (?:내|제|우리)\s[^,.]{1,15}(?:은|는|이|가)\s
        (?:나는|저는|난|전)\s[^.?]{1,25}(?:이야|야|입니다|이에요|예요|살아|삽니다|살고|일해|일합니다|있어|있습니다|있어요)
        (?:이름|생일|전화번호|주소|이메일)(?:은|는|이)
        라고\s?불러
        알레르기(?:가)?\s?(?:있|이)""",
    rule=r"""
        (?:앞으로|이제부터|지금부터)(?:는|은)?\s.{2,}
        (?:항상|언제나|절대|반드시)\s.{2,}(?:해|하지|줘|세요|써|사용|답)""",
    question=r"(?:까|나요|니|냐|가요|을까요|는지)$",
    injection=r"""
        (?:이전|위의|앞의|모든|지금까지의?)\s?.{0,8}(?:지시|명령|프롬프트|규칙).{0,6}(?:무시|잊)
        (?:지시|명령|프롬프트|규칙)(?:을|를|사항을)?\s?(?:모두\s?)?(?:무시|잊)
        (?:지시|명령|규칙)(?:사항)?(?:을|를|에)?\s?따르지\s?(?:마|말)|새(?:로운)?\s?(?:지시|명령)(?:사항)?\s?[:：]
        시스템\s?(?:프롬프트|메시지)
        개발자\s?(?:메시지|모드)
        (?:도구|명령어?|스크립트)(?:를|을)?\s?.{0,10}(?:실행|호출)|실행.{0,15}(?:도구|명령)""",
    entity=r"이름|전화|이메일|주소|생일|번호|불러",
    fact=r"입니다|이에요|예요|이야|있어|있습니다|살아",
    spaced=False,
)

SPANISH = Language(
    "Spanish",
    remember=r"""
        (?:por favor,? )?(?:recuerda|recuerde|acuérdate|acuerdate|ten en cuenta|tenga en cuenta) (?:que|de|esto|mi)
        ^(?:por favor,? )?(?:recuerda|recuerde|acuérdate)
        no (?:te )?olvides (?:que|de)
        (?:anota|apunta) que
        importante:""",
    preference=r"""
        (?:yo |siempre )?prefiero
        (?:a mí )?(?:no )?me (?:gustan?|encantan?|molestan?|disgustan?)
        (?:odio|detesto|adoro)
        mi (?:\w+ )?(?:favorit[oa]|preferid[oa])""",
    decision=r"""
        (?:hemos|he) (?:decidido|acordado|elegido)
        (?:decidimos|acordamos|decidí)
        (?:usaremos|vamos a usar|utilizaremos|nos quedamos con)""",
    about=r"""
        mis? (?:[\w'’-]+ ){0,4}?(?:es|son|se llama|se llaman|vive|viven|trabaja|está)
        me llamo|llámame|llamame
        (?:vivo|trabajo|nací|estudio) (?:en|como|para|con)
        soy (?:alérgic[oa]|vegetarian[oa]|vegan[oa]|diabétic[oa]|de [a-zñáéíóú]+)
        tengo (?:alergia|\w+ (?:hijos?|hijas?|hermanos?|hermanas?|perros?|gatos?))""",
    rule=r"""
        ^(?:por favor,? )?(?:siempre|nunca) \w+
        (?:a partir de ahora|de ahora en adelante|en el futuro|a partir de hoy)
        cada vez que (?:te )?(?:pregunte|pida|diga)""",
    nothing=r"me (?:gusta|encanta) (?:eso|esto|esta|este|tu|la idea|la foto|cómo|mucho)",
    question=r"^¿",
    injection=r"""
        (?:ignora|ignore|olvida|olvide|descarta|omite) (?:\w+ ){0,4}(?:instrucciones|indicaciones|reglas
        |órdenes|mensajes)
        no (?:sigas|siga|obedezcas) (?:\w+ ){0,3}(?:instrucciones|reglas|órdenes)|nuevas instrucciones:
        (?:mensaje|prompt|instrucciones) (?:del?|de los) (?:sistema|desarrollador...)
        (?:ejecuta|ejecute|invoca|llama a)\b.{0,40}\b(?:herramientas?|comandos?)""",
    entity=r"teléfono|correo|email|dirección|llamo|llama|nombre|número|cumpleaños",
    fact=r"es|son|está|están|tiene|tengo|vivo|trabajo",
)

GERMAN = Language(
    "German",
    remember=r"""
        (?:bitte )?(?:merk...|merken sie) (?:dir|euch|sich)
        (?:bitte )?vergiss nicht|vergessen sie nicht
        (?:denk|denke|denken sie) (?:bitte )?daran
        (?:notier|notiere|notieren sie)
        (?:zur erinnerung|wichtig):""",
    preference=r"""
        ich (?:\w+ ){0,2}?(?:bevorzuge|mag|liebe|hasse|verabscheue)
        (?:ich \w+ |trinke ich |esse ich |nehme ich )?(?:lieber|am liebsten)
        (?:mir|uns) (?:gefällt|gefallen|schmeckt|schmecken)
        mein(?:e|en)? lieblings...""",
    decision=r"""
        (?:wir|ich) (?:haben|habe) (?:uns|mich|\w+ )?.{0,30}?(?:entschieden|beschlossen|geeinigt|festgelegt)
        (?:wir|ich) (?:nehmen|verwenden|benutzen|nutzen|bleiben bei|verwende|nehme) (?:jetzt|ab|künftig|nun|lieber)
        beschlossen ist""",
    about=r"""
        mein(?:e|er|en)? (?:[\w-]+ ){0,3}?(?:ist|sind|heißt|heißen|heisst|lautet|wohnt|arbeitet|hat)
        ich heiße|ich heisse|nenn mich|nennt mich
        ich (?:wohne|lebe|arbeite|studiere) (?:\w+ )?(?:in|bei|als|für|an)
        ich bin (?:allergisch|vegetarier...|veganer...|diabetiker...|verheiratet|aus [a-zäöü]+)
        ich habe (?:eine |\w+ )?(?:allergie|kinder|söhne|töchter|geschwister|hunde|katzen|einen sohn|einen hund)""",
    rule=r"""
        ^(?:bitte )?(?:immer|nie|niemals|antworte (?:immer|nie)) \w+
        (?:ab jetzt|von nun an|ab sofort|in zukunft|künftig|ab heute)
        (?:bitte|ich \w+|du sollst) (?:immer|nie|niemals)
        jedes mal,? wenn ich""",
    nothing=r"(?:mag|liebe) (?:das|dies...|dein...|es|ihn|sie|wie)",
    question=r"^(?:was|wer|wo|wann|warum|wie|welche...|kannst|könntest|hast|bist|ist|sind)",
    injection=r"""
        (?:ignorier...|vergiss|missachte) (?:\w+ ){0,4}(?:anweisungen|instruktionen|regeln|vorgaben|befehle|prompts?)
        (?:folge|folgen sie|befolge|befolgen sie) (?:\w+ ){0,3}(?:nicht|keine...) (?:\w+ ){0,3}(?:anweisungen|regeln
        |vorgaben)|(?:befolge|befolgen sie) (?:\w+ ){0,3}(?:anweisungen|regeln|vorgaben) nicht|neue anweisung...:
        (?:system|entwickler)(?:[- ]?(?:prompt|nachricht|anweisung...|meldung))
        (?:führe|starte|rufe)\b.{0,40}\b(?:tools?|werkzeuge?|befehle?|kommandos?)""",
    entity=r"telefon...|e-?mail...|adresse|heiße|heisse|heißt|name|nummer|geburtstag",
    fact=r"ist|sind|war|hat|habe|haben|wohne|arbeite",
)

FRENCH = Language(
    "French",
    remember=r"""
        (?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous)
        (?:retiens|retenez|n['’]oublie pas|n['’]oubliez pas|note|notez|garde en tête
        ) (?:bien )?(?:que|qu['’]\w+|de|d['’]\w+|ça|ceci)
        important ?:""",
    preference=r"""
        je préfère|nous préférons|on préfère
        j['’](?:aime|adore)|je (?:déteste|n['’]aime pas|ne mange pas|ne bois pas)
        (?:mon|ma|mes) (?:\w+ )?(?:préféré...|favori...)""",
    decision=r"""
        (?:nous avons|on a|j['’]ai) (?:finalement |donc )?(?:décidé|convenu|choisi|opté)
        (?:on va utiliser|nous utiliserons|on utilisera|on reste sur|on part sur)""",
    about=r"""
        (?:mon|ma|mes) (?:[\w'’-]+ ){0,4}?(?:est|sont|s['’]appelle|s['’]appellent|habite|travaille|a)
        je m['’]appelle|appelle-moi|appelez-moi
        j['’]habite|je (?:vis|travaille|suis né...|étudie) (?:à|en|chez|comme|au|dans|pour)
        je suis (?:allergique|végétarien...|végétalien...|diabétique|marié...)
        j['’]ai (?:une allergie|\w+ (?:enfants?|fils|filles?|frères?|sœurs?|chiens?|chats?))""",
    rule=r"""
        (?:à partir de maintenant|désormais|dorénavant|à l['’]avenir|dès maintenant)
        ^(?:réponds|répondez|utilise|utilisez|écris|écrivez) toujours
        ne \w+ jamais
        chaque fois que je""",
    nothing=r"j['’](?:aime|adore) (?:ça|ca|cette|ce|ton|ta|tes|votre|vos|l['’]idée|comment|bien)",
    question=r"^(?:est-ce|qu['’]est|que|qui|où|quand|pourquoi|comment|quel...|peux-tu|pouvez-vous)",
    injection=r"""
        (?:ignore|ignorez|oublie|oubliez|néglige) (?:\w+ ){0,4}(?:instructions|consignes|règles|directives|ordres)
        ne (?:suis|suivez|respecte|respectez) (?:pas|plus) (?:\w+ ){0,3}(?:instructions|consignes|règles|directives)
        nouvelles (?:instructions|consignes) ?:
        (?:message|invite|prompt|instructions?) (?:du|de) (?:système|développeur)
        (?:exécute|exécutez|lance|lancez|appelle|appelez)\b.{0,40}\b(?:outils?|commandes?)""",
    entity=r"téléphone|e-?mail|courriel|adresse|appelle|nom|numéro|anniversaire",
    fact=r"est|sont|a|ai|habite|travaille|suis",
)

RUSSIAN = Language(
    "Russian",
    remember=r"""
        (?:пожалуйста,? )?(?:запомни|запомните|запиши|запишите)
        не (?:забудь|забудьте|забывай)
        (?:имей|имейте) в виду|учти|учтите
        важно:""",
    preference=r"""
        я (?:\w+ ){0,2}?(?:люблю|обожаю|предпочитаю|ненавижу|терпеть не могу|не ем|не пью)
        мне (?:\w+ ){0,2}?(?:нравится|нравятся)
        предпочитаю
        мо[йяёеи] любим...""",
    decision=r"""
        (?:мы|я) (?:\w+ )?(?:решили?|решила|договорились|выбрали?)
        (?:будем|буду) использовать""",
    about=r"""
        мо[йяёеи] (?:[\w-]+ ){0,3}?(?:это|—|-|:|зовут|живёт|живет|работает)
        мо[йяёеи] (?:номер|телефон|адрес|почта|имя|день рождения|пароль)
        меня зовут|зови меня|называй меня
        я (?:\w+ )?(?:живу|работаю|учусь|родил...) (?:в|на|как|с|у)
        у меня (?:\w+ )?(?:аллергия|есть|двое|трое|сын|дочь|собака|кошка|брат|сестра)
        я (?:вегетариан...|веган...|инженер|врач|учитель|студент...|программист...)""",
    rule=r"""
        ^(?:пожалуйста,? )?(?:всегда|никогда) \w+
        (?:впредь|отныне|с этого момента|с сегодняшнего дня|в будущем|теперь всегда)
        (?:отвечай|пиши|используй)(?:те)? (?:всегда|только|мне)""",
    nothing=r"(?:нравится|люблю) (?:это|эта|этот|твой|твоя|твои|тебя|как)",
    question=r"^(?:что|кто|где|когда|почему|как|какой|какая|какие|можешь|можно ли)",
    injection=r"""
        (?:игнорируй...|проигнорируй...|забудь|забудьте|отмени) (?:\w+ ){0,4}(?:инструкци...
        |указани...|правила|команды|подсказк...)
        не (?:следуй|выполняй|слушай|соблюдай)(?:те)? (?:\w+ ){0,3}(?:инструкци...|указани...|правил...)
        нов... инструкци...:
        (?:системн... (?:промпт|сообщени...|подсказк...|инструкци...))|сообщени... разработчик...
        (?:выполни|запусти|вызови)(?:те)?\b.{0,40}\b(?:инструмент...|команд...|скрипт...)""",
    entity=r"телефон...|почт...|адрес...|зовут|имя|номер...|день рождения",
    fact=r"это|есть|живу|работаю|был|была|были",
)

LANGUAGES = (ENGLISH, CHINESE, JAPANESE, KOREAN, SPANISH, GERMAN, FRENCH, RUSSIAN)
