"""What the offline model can say by itself, and the requests to remember that it understands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from attrs import frozen

Language: TypeAlias = Literal["en", "zh", "ja", "ko", "es", "de", "fr"]

INSTALL_MEMORY = "pip install lamella-memory-core"


@frozen(slots=True)
class Phrases:
    """The fixed phrases of one language. Braces stand for a place, a file or an error."""

    not_a_model: str
    found: str
    nearest: str
    nothing: str
    saved: str
    not_saved: str
    what_to_save: str
    search_failed: str
    no_memory: str
    hello: str


_PHRASES: Mapping[Language, Phrases] = MappingProxyType(
    {
        "en": Phrases(
            not_a_model=(
                "(I am lamella's offline model: fixed rules, not a language model. I quote your notes and write down "
                "what you ask me to remember.)"
            ),
            found="Your notes say:",
            nearest="No note uses these words. The nearest one I found:",
            nothing="I found nothing about that in memory. To save something, say: remember that …",
            saved="Saved to {place}.",
            not_saved="It could not be saved: {error}",
            what_to_save="What should I remember? Say: remember that …",
            search_failed="Memory could not be searched: {error}",
            no_memory="No memory is installed, so I can neither look up nor save anything. Install it with: {command}",
            hello="Hello. Ask me about your notes, or say: remember that …",
        ),
        "zh": Phrases(
            not_a_model=(
                "（我是 lamella 的离线模型：只有固定规则，不是语言模型。我会引用你的笔记，并记下你要我记住的内容。）"
            ),
            found="你的笔记里写着：",
            nearest="没有笔记用到这些词。找到的最接近的一条是：",
            nothing="记忆里没有找到相关内容。要保存内容，请说：记住……",
            saved="已保存到 {place}。",
            not_saved="没能保存：{error}",
            what_to_save="要我记住什么？请说：记住……",
            search_failed="无法搜索记忆：{error}",
            no_memory="没有安装记忆插件，所以既不能查找也不能保存。安装命令：{command}",
            hello="你好。可以问我笔记里的内容，或者说：记住……",
        ),
        "ja": Phrases(
            not_a_model=(
                "（私は lamella のオフラインモデルです。固定の規則で動き、言語モデルではありません。"
                "メモを引用し、頼まれたことを書き留めます。）"
            ),
            found="メモにはこうあります：",
            nearest="その言葉を含むメモはありません。最も近いものは：",
            nothing="記憶には何も見つかりませんでした。保存するには「…を覚えて」と言ってください。",
            saved="{place} に保存しました。",
            not_saved="保存できませんでした：{error}",
            what_to_save="何を覚えればよいですか。「…を覚えて」と言ってください。",
            search_failed="記憶を検索できませんでした：{error}",
            no_memory="記憶プラグインがないため、検索も保存もできません。インストール：{command}",
            hello="こんにちは。メモについて尋ねるか、「…を覚えて」と言ってください。",
        ),
        "ko": Phrases(
            not_a_model=(
                "(저는 lamella의 오프라인 모델입니다. 정해진 규칙으로 움직이며 언어 모델이 아닙니다. "
                "메모를 인용하고, 기억해 달라는 내용을 적어 둡니다.)"
            ),
            found="메모에는 이렇게 적혀 있습니다:",
            nearest="그 말을 쓴 메모는 없습니다. 가장 가까운 메모는:",
            nothing="기억에서 아무것도 찾지 못했습니다. 저장하려면 “… 기억해 줘”라고 말해 주세요.",
            saved="{place}에 저장했습니다.",
            not_saved="저장하지 못했습니다: {error}",
            what_to_save="무엇을 기억할까요? “… 기억해 줘”라고 말해 주세요.",
            search_failed="기억을 검색하지 못했습니다: {error}",
            no_memory="기억 플러그인이 없어서 찾거나 저장할 수 없습니다. 설치: {command}",
            hello="안녕하세요. 메모에 대해 묻거나 “… 기억해 줘”라고 말해 주세요.",
        ),
        "es": Phrases(
            not_a_model=(
                "(Soy el modelo sin conexión de lamella: reglas fijas, no un modelo de lenguaje. Cito tus notas y "
                "anoto lo que me pides recordar.)"
            ),
            found="Tus notas dicen:",
            nearest="Ninguna nota usa esas palabras. La más cercana que encontré:",
            nothing="No encontré nada sobre eso en la memoria. Para guardar algo, di: recuerda que …",
            saved="Guardado en {place}.",
            not_saved="No se pudo guardar: {error}",
            what_to_save="¿Qué debo recordar? Di: recuerda que …",
            search_failed="No se pudo buscar en la memoria: {error}",
            no_memory="No hay ninguna memoria instalada; no puedo buscar ni guardar nada. Instálala con: {command}",
            hello="Hola. Pregúntame por tus notas o di: recuerda que …",
        ),
        "de": Phrases(
            not_a_model=(
                "(Ich bin das Offline-Modell von lamella: feste Regeln, kein Sprachmodell. Ich zitiere deine Notizen "
                "und schreibe auf, was ich mir merken soll.)"
            ),
            found="In deinen Notizen steht:",
            nearest="Keine Notiz enthält diese Wörter. Am nächsten kommt:",
            nothing="Dazu habe ich im Gedächtnis nichts gefunden. Zum Speichern sag: merk dir, dass …",
            saved="Gespeichert in {place}.",
            not_saved="Das konnte nicht gespeichert werden: {error}",
            what_to_save="Was soll ich mir merken? Sag: merk dir, dass …",
            search_failed="Das Gedächtnis konnte nicht durchsucht werden: {error}",
            no_memory="Es ist kein Gedächtnis installiert; ich kann nichts suchen oder speichern. Abhilfe: {command}",
            hello="Hallo. Frag mich nach deinen Notizen oder sag: merk dir, dass …",
        ),
        "fr": Phrases(
            not_a_model=(
                "(Je suis le modèle hors ligne de lamella : des règles fixes, pas un modèle de langue. Je cite tes "
                "notes et j'écris ce que tu me demandes de retenir.)"
            ),
            found="Tes notes disent :",
            nearest="Aucune note n'emploie ces mots. La plus proche :",
            nothing="Je n'ai rien trouvé à ce sujet en mémoire. Pour enregistrer, dis : retiens que …",
            saved="Enregistré dans {place}.",
            not_saved="L'enregistrement a échoué : {error}",
            what_to_save="Que dois-je retenir ? Dis : retiens que …",
            search_failed="La recherche en mémoire a échoué : {error}",
            no_memory="Aucune mémoire n'est installée : je ne peux ni chercher ni enregistrer. À installer : {command}",
            hello="Bonjour. Pose une question sur tes notes ou dis : retiens que …",
        ),
    }
)

DISCLOSURES = tuple(phrases.not_a_model for phrases in _PHRASES.values())


def phrases(language: Language) -> Phrases:
    return _PHRASES[language]


# --- which language ----------------------------------------------------------------------------------


_KANA = re.compile("[\u3041-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
_TELLING_WORDS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("es", re.compile(r"[¿¡]|\b(?:qué|cuál|cuándo|dónde|cómo|quién|mi|el|los|recuerda|es|está|hola|gracias)\b")),
    ("de", re.compile(r"\b(?:der|die|das|ist|wie|wann|wer|warum|mein|meine|und|nicht|merke?|bitte|hallo|danke)\b")),
    ("fr", re.compile(r"\b(?:le|les|est|quel|quelle|quand|où|qui|pourquoi|mon|mes|je|bonjour|merci|retiens)\b")),
    ("en", re.compile(r"\b(?:the|is|what|when|where|who|my|i|you|do|remember|that|of|and|hello|thanks)\b")),
)


def language_of(text: str) -> Language:
    """The language that a text is most likely in; English when nothing tells."""
    if _KANA.search(text):
        return "ja"
    if _HANGUL.search(text):
        return "ko"
    if _IDEOGRAPH.search(text):
        return "zh"
    lowered = text.lower()
    counts = {language: len(words.findall(lowered)) for language, words in _TELLING_WORDS}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] > counts["en"] else "en"


# --- requests to remember, and small talk --------------------------------------------------------------


_REMEMBER_FIRST = re.compile(
    r"""^(?:
      (?:(?:ok(?:ay)?|hey|hi|and|also|so)[,\s]+)?(?:please[,\s]+)?(?:(?:can|could|will|would)\ you\ (?:please\ )?)?
        (?:remember|memori[sz]e|keep\ in\ mind|do\ not\ forget|don['’]t\ forget|note\ down|make\ a\ note|
           take\ a\ note|write\ down|note)\b
        (?:[,\s]+please)?(?:\ (?:that|this|of|to\ memory|down))?
      |(?:请|麻烦|你)*(?:帮我|替我|给我)?(?:你)?(?:把(?:这个|这一点)?)?
        (?:记住|记下来?|记一下|记得|别忘了?|不要忘记?|记录)(?:一下|这个|这一点|这件事)?(?:哦|啊)?
      |(?:これを|次を|次のことを)?(?:覚えておいて|覚えて|メモして|記憶して)(?:ください|くれ|ね)?(?=[:：、,\s])
      |(?:이것을|다음을|이거)?\s*(?:기억해|메모해)\s*(?:줘|주세요|둬|두세요)?(?=[:：,\s])
      |(?:por\ favor[,\s]+)?(?:recuerda|recuerde|acu[ée]rdate\ de|anota|apunta|no\ olvides)\b(?:\ que)?
      |(?:bitte\ )?(?:merke?\ dir|notiere?|erinnere\ dich(?:\ daran)?|vergiss\ nicht|denk\ daran)\b
        (?:[,\s]*bitte)?(?:[,\s]*dass)?
      |(?:s['’]il\ (?:te|vous)\ pla[iî]t[,\s]+)?
        (?:souviens-toi|rappelle-toi|retiens|retenez|note|notez|n['’]oublie\ pas)\b(?:\ (?:bien|que|de))?
    )[\s:：,，、\-–—]*(?P<what>.*)$""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_REMEMBER_LAST = re.compile(
    r"""^(?P<what>.+?)(?:
      [、,\s]*(?:という?(?:こと)?|と|って|こと)?(?:を)?\s*(?:覚えておいて|覚えて(?:いて)?|メモして(?:おいて)?|記憶して)
        (?:ください|下さい|くれ|ね|よ)*
      |[,\s]*(?:(?:다|라)고|는\ 것을?|은\ 것을?|는\ 걸|은\ 걸|을|를)?\s*(?:꼭\s*)?(?:기억해|메모해)\s*
        (?:줘|주세요|둬|두세요|줄래)?
      |[，,。\s]*(?:请|你)*(?:帮我)?(?:记住|记下来|记一下)(?:吧|哦|啊|这一点)?
    )[\s。.!！]*$""",
    re.DOTALL | re.VERBOSE,
)
_ASKS = re.compile(r"[?？]\s*$|[吗呢]\s*[。!！]?$|(?:か|の)[。？]?$")
_RECALLS = re.compile(r"记得.*(?:哪|什么|谁|多少|怎么|几)")  # "do you remember which ...", without a question mark
_SEARCHED_CHARS = 2000  # a request to remember stands at the beginning, or around a short text
_SENTENCE_END = re.compile(r"[.!?。！？]\s*|\n+")
_CLEAR_REQUEST = re.compile(r"^(?:can|could|will|would) you .*\bthat\b", re.IGNORECASE | re.DOTALL)
_SMALL_TALK = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|day)|thanks?(?: you)?(?: very much)?|thx|ok(?:ay)?|great|bye|goodbye|"
    r"你好|您好|嗨|早上好|晚上好|谢谢你?|多谢|好的?|再见|こんにちは|ありがとう(?:ございます)?|안녕(?:하세요)?|감사합니다|고마워|"
    r"hola|gracias|adi[óo]s|hallo|danke|tsch[üu]ss|bonjour|salut|merci|au revoir)(?: there| lamella)?\W*$",
    re.IGNORECASE,
)


def asked_to_remember(text: str) -> str | None:
    """What a user asks to be remembered; empty when they do not say what, None when they do not ask."""
    stripped = text.strip()
    if (_ASKS.search(stripped) or _RECALLS.search(stripped)) and not _CLEAR_REQUEST.match(stripped):
        return None  # "Remember when we ...?" is a question
    starts = (0, *(end.end() for end in _SENTENCE_END.finditer(stripped, 0, _SEARCHED_CHARS)))
    found = next((m for at in starts if (m := _REMEMBER_FIRST.match(stripped[at:]))), None)
    if found is None and len(stripped) <= _SEARCHED_CHARS:
        found = _REMEMBER_LAST.match(stripped)
    return found["what"].strip(" \t\n?？") if found else None


def is_small_talk(text: str) -> bool:
    """Greetings and thanks, which need no search."""
    return _SMALL_TALK.match(text) is not None
