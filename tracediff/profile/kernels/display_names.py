"""Display names: a short form of a kernel or operator name that fits one line of a table."""

import re
from collections.abc import Iterator
from functools import lru_cache

from tracediff import bounds
from tracediff.errors import printable
from tracediff.patterns import NAMES_KEPT, late
from tracediff.profile.kernels.match_names import COPY, MEMSET, match_name
from tracediff.runtimes import is_communication

OVERLOADED = ("cudnn::",)
"""Libraries in which two templates of equal arguments differ in parameters only."""
SIGNATURE = late(r"(?:void |[A-Za-z_][\w:]*[<(]|(?:[\w:]+::)?\(anonymous namespace\)::).*(?:[)>\]]|\bconst)$")
"""What C++ kernels look like: a name, template arguments or parameters, and nothing after them."""
PYTHON = late(rf"\(\d+\): |^nn\.Module|^(?:autograd::engine|ProfilerStep|{COPY}|{MEMSET})")
SHORT_TYPES = {
    "c10::BFloat16": "bf16",
    "c10::Half": "half",
    "__nv_bfloat16": "nv_bf16",
    "unsigned int": "uint",
    "unsigned long": "ulong",
    "unsigned char": "uint8",
    "signed char": "int8",
    "true": "1",
    "false": "0",
}
SHORT_NAMES = {
    "multi_tensor_apply_kernel": "multi_tensor",
    "TensorListMetadata": "List",
    "TensorListScalarListMetadata": "ScalarList",
    "FusedOptimizerTensorListMetadata": "OptimizerList",
    "_scatter_gather_elementwise_kernel": "scatter_gather",
    "_cuda_scatter_gather_internal_kernel": "internal",
}
NEUTRAL = frozenset(("at", "native", "c10", "std"))
"""Namespaces that distinguish no kernels."""
NEUTRAL_INSIDE = NEUTRAL.union(
    ("cuda", "detail", "binary_internal", "memory", "templates", "cutlass", "gemm", "threadblock", "device", "kernel"),
    ("epilogue", "layout", "arch"),
)
"""The same within template arguments."""
ELEMENTWISE = {
    "elementwise_kernel": ("elementwise",),
    "elementwise_kernel_manual_unroll": ("elementwise", "unrolled"),
    "index_elementwise_kernel": ("index",),
}
"""ATen's loops over <threads, items, functor>: what a name begins with, and notes."""
TRIVIAL, STRIDED = "TrivialOffsetCalculator", "OffsetCalculator"
AccessNotes = dict[tuple[str, ...], list[str]]
OFFSETS: AccessNotes = {(TRIVIAL, TRIVIAL): [], (STRIDED, STRIDED): ["strided"], (STRIDED, TRIVIAL): ["strided in"]}
CASTS: AccessNotes = {("LoadWithoutCast", "StoreWithoutCast"): [], ("LoadWithCast", "StoreWithCast"): ["cast"]}
"""Offset calculators of inputs and outputs, and loader and storer, of an unrolled loop → notes."""
LITERAL = late(r"^(?:\([\w: ()]+\))?(-?\d+)(?:u|l|ul|ull|ll)?$")
LAMBDA = late(r"^\{lambda\((?P<parameters>.*)\)#(?P<ordinal>\d+)\}$")
TILE = late(r".*?(?:_MT\d+x\d+x\d+(?:_MI[\dx]+)?|(?<=tilesize)\d+x\d+x\d+)(?=_)")
"""The part of a generated GEMM's or convolution's name up to its tile; what follows are dozens of tuning knobs."""
BUILTIN = {
    "f": "float",
    "d": "double",
    "i": "int",
    "j": "uint",
    "l": "long",
    "m": "ulong",
    "x": "longlong",
    "b": "bool",
    "h": "uint8",
    "a": "int8",
}
SIMPLE_ARGUMENT = late(r"L[a-z](n?\d+)E|(DF16b)|(DF16_)|([fdijlmxbha])")
LENGTH = late(r"[1-9]\d{0,3}")
"""Before each identifier in a mangled name."""
IDENTIFIER = late(r"^[\w.]+$")
FIRST_BRACKET = late(r"[<(]")
OWN_PARAMETERS = late(r"(?:Params|Args|Storage<\w+>)$")
CLOSED_BY = {"<": ">", "(": ")", "{": "}", "[": "]"}
BRACKET = late(r"[<({\[\]})>]")
SEPARATORS = {
    " ": late(r"[<({\[\]})> ]"),
    ",": late(r"[<({\[\]})>,]"),
    "::": late(r"[<({\[\]})>]|::"),
}
"""Brackets or the separator."""
BREAK = late(r"[,<(:]+")
QUALIFIERS = late(r"(?<![*&\s])(?<!\bconst)(?:\bconst\b|[*&\s])++$")
"""What a type ends in; begins only where none of these comes before, so that each is read once."""
CUTLASS_NAME = late(r"^cutlass\w+$")
CUDA_FUNCTOR = late(r"^CUDAFunctor(?:On(Self|Other))?_(\w+)")
FUNCTOR = late(r"^(\w+)Functor\b")
ARRAY_OF_POINTERS = late(r"^(?:std::array|at::detail::Array)<char\*")
"""To data, whose length the functor implies."""


@lru_cache(maxsize=NAMES_KEPT)
def display_name(raw: str) -> str:
    """A short form of ``raw`` for tables, made from its match name: stable against ids, addresses and counters; never
    empty, never of several lines.

    Two match names get one readable name only where they differ in white space, in where a template is declared
    (``at::native::``, an anonymous namespace), in parameters that follow from a template's arguments, or in details of
    a torch version (``at::detail::Array`` or ``std::array``).
    Whatever else is left out is stood for by a digest: ``…#3fa2c1``.
    """
    name = " ".join(printable(match_name(raw)).split())
    if not name:
        return "(no name)"
    if name.startswith("_Z") and (short := _mangled(name)):
        return short
    if SIGNATURE.match(name) and not PYTHON.search(name) and _balanced(name):
        return _signature(name) or name
    return _identifier(name)


def _digest(text: str) -> str:
    import hashlib  # which loads OpenSSL

    return f"…#{hashlib.blake2s(text.encode(errors='surrogatepass'), digest_size=3).hexdigest()}"


def _identifier(name: str) -> str:
    """A name without template arguments: as it is, or its beginning where it is a kernel's long list of ops or tuning
    knobs.
    """
    if len(name) <= bounds.KERNEL_NAME:
        return name
    if not IDENTIFIER.match(name):
        return name if len(name) <= bounds.OTHER_NAME else name[: bounds.OTHER_NAME - 8] + _digest(name)
    tile = TILE.match(name)
    head = tile[0] if tile else name[: bounds.KERNEL_NAME - 8].rpartition("_")[0] or name[: bounds.KERNEL_NAME - 8]
    head = head.replace("_implicit_gemm_", "_igemm_").replace("_tilesize", "_")
    return head + _digest(name)


def _balanced(text: str) -> bool:
    """Whether brackets close in order, and do not nest beyond what is parsed."""
    waiting: list[str] = []
    for bracket in BRACKET.findall(text.replace("->", "")):
        if bracket in CLOSED_BY:
            waiting.append(CLOSED_BY[bracket])
            if len(waiting) > bounds.BRACKETS:
                return False
        elif not waiting or waiting.pop() != bracket:
            return False
    return not waiting


def _depths(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
    """Each match of a bracket or separator in ``text``, and how many brackets are open behind it."""
    depth = 0
    for m in pattern.finditer(text):
        if m[0] in CLOSED_BY:
            depth += 1
        elif m[0] in CLOSED_BY.values() and (m[0] != ">" or not text.endswith("-", 0, m.start())):
            depth -= 1
        yield m, depth


def _pieces(text: str, separator: str) -> list[str]:
    """``text`` split at each ``separator`` (one of SEPARATORS) outside all brackets."""
    out, start = [], 0
    for m, depth in _depths(text, SEPARATORS[separator]):
        if depth == 0 and m[0] == separator:
            out.append(text[start : m.start()].strip())
            start = m.end()
    return [*out, text[start:].strip()]


def _component(part: str) -> tuple[str, list[str] | None, str | None]:
    """(name, template arguments, parameters) of ``name<arguments>(parameters)``; None where there are no such
    brackets.
    """
    name, *_ = FIRST_BRACKET.split(part, 1)
    rest = part[len(name) :]
    arguments = parameters = None
    if rest.startswith("<"):
        end = _closing(rest)
        arguments = [a for a in _pieces(rest[1:end], ",") if a]
        rest = rest[end + 1 :].strip()
    if rest.startswith("("):
        parameters = rest[1 : _closing(rest)].strip()
    return name.strip(), arguments, parameters


def _closing(text: str) -> int:
    """The position of the bracket that closes the one ``text`` begins with."""
    return next((m.start() for m, depth in _depths(text, BRACKET) if depth == 0), len(text) - 1)


def _signature(name: str) -> str:
    """The short form of a C++ kernel: no return type, no neutral namespaces, its template arguments as far as they
    fit.
    """
    words = [w for w in _pieces(name.replace("operator()", "operator"), " ") if w not in ("const", "[clone .kd]")]
    tail = "".join(f" {w}" for w in words if w.startswith("["))
    words = [w for w in words if not w.startswith("[")]
    if not words:
        return ""
    if words[-1].startswith("(") and len(words) > 1 and not words[-1].startswith("(anonymous"):
        words[-2:] = [words[-2] + words[-1]]
    function = words[-1]
    *_, last = _pieces(function, "::")
    plain, arguments, parameters = _component(last)
    if arguments is not None:
        template = _known_template(plain, arguments)
        short = _cut(template, bounds.LOOP_NAME) if template else _cut(_without_own_scope(_inside(function, NEUTRAL)))
        overload = _digest(parameters) if parameters and function.startswith(OVERLOADED) else ""
        return short + overload + tail
    return _inside(function, NEUTRAL) + _plain_parameters(plain, parameters) + tail


def _plain_parameters(plain: str, parameters: str | None) -> str:
    """What to show of the parameters of a function that is not a template, since only they distinguish two overloads.

    A single struct of parameters belongs to the name, and NCCL's change with its version only.
    """
    if not parameters or is_communication(plain) or OWN_PARAMETERS.search(parameters):
        return ""
    short = ",".join(map(_inside, _pieces(parameters, ",")))
    return f"({short})" if len(short) <= 24 else _digest(short)


def _cut(short: str, width: int = bounds.KERNEL_NAME) -> str:
    """``short`` where it fits, else its beginning and a digest of all of it; the kernel's own name is never cut."""
    if len(short) <= width:
        return short
    name_length = len(short.partition("<")[0])
    breaks = [m.start() + (m[0] in "<(") for m in BREAK.finditer(short[: width - 8])]
    return short[: max([name_length, *breaks])].rstrip(":") + _digest(short)


def _without_own_scope(short: str) -> str:
    """``flash::kernel<flash::Traits<…>>`` says ``flash`` once."""
    head, bracket, rest = short.partition("<")
    for scope in head.split("::")[:-1][: bounds.SCOPES_LEFT_OUT]:
        rest = re.sub(rf"(?<![\w:]){re.escape(scope)}::", "", rest)
    return head + bracket + rest


def _inside(text: str, neutral: frozenset[str] = NEUTRAL_INSIDE) -> str:
    """A type, value, function or lambda in short, without the namespaces of ``neutral``."""
    text = text.strip()
    if text in SHORT_TYPES:
        return SHORT_TYPES[text]
    literal = LITERAL.match(text)
    if literal:
        return literal[1]
    bare = QUALIFIERS.sub("", text)
    if bare and bare != text:
        return _inside(bare, neutral) + text[len(bare) :]
    scopes: list[str] = []
    ordinals: list[str] = []
    parameters: str | None = None
    for part in _pieces(text.removesuffix(" const"), "::"):
        part = part.removesuffix(" const")
        if part in ("(anonymous namespace)", "{anonymous}", ""):
            continue
        lambda_match = LAMBDA.match(part)
        if lambda_match:
            ordinals.append(lambda_match["ordinal"])
            parameters = lambda_match["parameters"]
            continue
        name, arguments, _ = (part, None, None) if part.startswith("decltype(") else _component(part)
        if arguments is None:
            if not name.startswith("operator"):
                scopes.append(SHORT_NAMES.get(name, name))
            continue
        inner = ",".join(map(_inside, arguments))
        scopes.append(f"{SHORT_NAMES.get(name, name) if name != 'operator' else ''}<{inner}>")
    short = "::".join([s for s in scopes[:-1] if s not in neutral] + scopes[-1:])
    if parameters is not None:
        place = "" if ordinals == ["1"] else ":" + ".".join(ordinals)
        short += place + "(" + ",".join(map(_inside, filter(None, _pieces(parameters, ",")))) + ")"
    return short or text


def _known_template(plain: str, arguments: list[str]) -> str | None:
    """The short form of ATen's most frequent templates, whose arguments repeat each other."""
    if plain == "vectorized_elementwise_kernel" and len(arguments) >= 2:
        further = [_inside(a) for a in arguments[2:] if not ARRAY_OF_POINTERS.match(a)]
        return _elementwise(arguments[1], [f"vec{_inside(arguments[0])}", *further])
    if plain == "unrolled_elementwise_kernel" and len(arguments) >= 2:
        return _elementwise(arguments[0], ["unrolled", *_access(arguments[2:])])
    if plain in ELEMENTWISE and len(arguments) >= 3:
        head, *notes = ELEMENTWISE[plain]
        size = "x".join(map(_inside, arguments[:2]))
        return _elementwise(arguments[2], [*notes, size, *map(_inside, arguments[3:])], head)
    if plain == "reduce_kernel" and len(arguments) == 3:
        return _reduction(arguments)
    if plain in ("Kernel", "Kernel2") and len(arguments) == 1 and CUTLASS_NAME.match(arguments[0]):
        return arguments[0] + ("" if plain == "Kernel" else f" [{plain}]")
    return None


def _elementwise(functor: str, notes: list[str], head: str = "elementwise") -> str:
    """``elementwise add<float> [vec4]``."""
    text, more = _functor(functor)
    return f"{head} {text} [{' '.join([*notes, *more])}]"


def _functor(text: str) -> tuple[str, list[str]]:
    """(a functor in short, notes on how it is called): the loops around it unwrapped, ``mul<float>(s,x)`` where one
    operand is a scalar.
    """
    *_, tail = _pieces(text, "::")
    looped = LAMBDA.match(tail)
    if looped:
        name, arguments, _ = _component(_last_named(text))
        if arguments and name in ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel"):
            notes = [name.removeprefix("gpu_kernel_impl_")] if name.endswith("nocast") else []
            notes += [f":{looped['ordinal']}"] if looped["ordinal"] != "1" else []
            inner, more = _functor(arguments[0])
            return inner, notes + more + [*map(_inside, arguments[1:])]
        return _inside(text), []
    name, arguments, _ = _component(tail)
    operands = {"AUnaryFunctor": "(s,x)", "BUnaryFunctor": "(x,s)", "BinaryFunctor": ""}.get(name)
    if operands is None or not arguments:
        short = _inside(text)
        short = CUDA_FUNCTOR.sub(lambda m: m[2] + (f"_on_{m[1].lower()}" if m[1] else ""), short)
        return FUNCTOR.sub(r"\1", short), []
    inner, more = _functor(arguments[-1])
    types = list(map(_inside, arguments[:-1]))
    plain = not types or (len(set(types)) == 1 and inner.endswith((f"<{types[0]}>", f"({types[0]},{types[0]})")))
    return inner + operands, more + ([] if plain else [",".join(types[:-1]) + "->" + types[-1]])


def _last_named(text: str) -> str:
    """The function that contains a lambda."""
    return next((p for p in reversed(_pieces(text, "::")) if not p.startswith(("{", "operator"))), text)


def _access(arguments: list[str]) -> list[str]:
    """How an unrolled kernel reaches its data: the items of a thread (newer versions), strides, casts."""
    items = [f"x{_inside(a)}" for a in arguments[:1] if LITERAL.match(a)]
    how = arguments[len(items) :]
    kinds = tuple(_component(_pieces(a, "::")[-1])[0] for a in how)
    if kinds[:2] in OFFSETS and kinds[2:] in CASTS:
        return items + OFFSETS[kinds[:2]] + CASTS[kinds[2:]]
    return [*items, _digest(",".join(how))]


def _reduction(arguments: list[str]) -> str | None:
    """``reduce sum_functor<float,float,float>(float,float) [512x1 float uint float 4]``."""
    name, parts, _ = _component(_pieces(arguments[2], "::")[-1])
    if name != "ReduceOp" or not parts or len(parts) < 2:
        return None
    functor, (kind, wrapped, _) = parts[1], _component(_pieces(parts[1], "::")[-1])
    notes = ["x".join(map(_inside, arguments[:2])), *map(_inside, [parts[0], *parts[2:]])]
    if kind == "func_wrapper_t" and wrapped and len(wrapped) == 2:
        functor = wrapped[1]
        if _inside(wrapped[0]) != notes[1]:
            notes.append(_inside(wrapped[0]))
    return f"reduce {_inside(functor)} [{' '.join(notes)}]"


def _mangled(name: str) -> str:
    """The short form of a mangled name: its scopes, its first simple template arguments, the classes after them, and a
    digest unless that is all.
    """
    position = 3 if name.startswith("_ZN") else 2
    scopes, position = _lengths(name, position)
    if not scopes:
        return ""
    arguments: list[str] = []
    whole = False
    if name[position : position + 1] == "I":
        position += 1
        while m := SIMPLE_ARGUMENT.match(name, position):
            arguments.append(m[1].replace("n", "-") if m[1] else "bf16" if m[2] else "half" if m[3] else BUILTIN[m[4]])
            position = m.end()
        whole = name[position : position + 1] == "E"
        if not whole:
            arguments += [*[c for c in _classes(name, position) if c not in scopes][:2], "…"]
    short = "::".join(scopes) + (f"<{','.join(arguments)}>" if arguments else "")
    if whole and len(short) <= bounds.KERNEL_NAME:
        return short
    return short[: bounds.KERNEL_NAME - 8].removesuffix(",…>") + _digest(name)


def _lengths(name: str, position: int) -> tuple[list[str], int]:
    """The identifiers written as length and text from ``position`` on, and where they end."""
    out: list[str] = []
    while m := LENGTH.match(name, position):
        end = m.end() + int(m[0])
        if end > len(name):
            break
        out.append(name[m.end() : end])
        position = end
    return [s for s in out if not s.startswith("_GLOBAL__N_")], position


def _classes(name: str, position: int) -> list[str]:
    """The last identifier of each run of them from ``position`` on, once each."""
    out: list[str] = []
    while position < len(name):
        identifiers, end = _lengths(name, position) if name[position - 1 : position] in "NI_E" else ([], position)
        out += identifiers[-1:]
        position = max(end, position + 1)
    return list(dict.fromkeys(out))
