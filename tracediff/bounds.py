"""Bounds of safety and of display: how much is read, computed, kept or shown. In what is usual they decide nothing; the
numbers that do are in `thresholds`.
"""

from tracediff.thresholds import Register

bound = Register()

# Texts
REASON = bound(200, "characters", "of a name, or of the names that there are, in an error, a reason or a link")
LONG_REASON = bound(300, "characters", "of a reason that another program gave")
HEALTH_MESSAGE = bound(500, "characters", "of a health note: some repeat names from the file")
LABEL = bound(60, "characters", "of a label in a sentence; kernels of both sides exceed it")
SHORT_VALUES = bound(80, "characters", "of both values of a caution shown beside its short name")
SIDE_NAME = bound(14, "characters", "of a side's label above a column of a table; longer ones are control and test")
SHORT_HASH = bound(9, "characters", "of a commit's hash in a line")
ROW_NAME = bound(100, "characters", "of a name in a list")
CELL = bound(300, "characters", "of a name in a cell of a table")
PAGE_NAME = bound(400, "characters", "of a name in a sentence of a page, and of a mark of a timeline")
PAGE_CELL = bound(600, "characters", "of a name in a table, or a flame graph, of a page")
CATEGORY = bound(64, "characters", "of a category's name in a note")
GROUP_NAME = bound(80, "characters", "of the name of a group of collectives")
PERFETTO_TEXT = bound(4000, "characters", "of a name or an argument for Perfetto; real names of kernels have 3,000")
SCREEN = bound(10_000, "columns", "or lines of a screen, and of what is printed elsewhere")
EXAMPLES = bound(3, "names", "places or lines of code that a sentence gives")
CALLS_NAMED = bound(4, "operators", "of which a sentence says how often both sides call them")
CAUSES_NAMED = bound(2, "causes", "of a direction that a sentence names")
PARTS_NAMED = bound(2, "names", "of a line's parts in its reason, and of kernels in a row of changed work")
GUARD = bound(5, "", "times as many digits of the step's change, so that its rounded sides still tell it")
CATEGORIES_NAMED = bound(4, "names", "of devices that are not read, in a line")
SETS_DESCRIBED = bound(6, "folders", "or files that an error describes")
NOTES = bound(40, "notes", "of health that are listed: files of others may cause any number")

# Names of kernels
KERNEL_NAME = bound(80, "characters", "of a name where only a digest can replace the rest")
LOOP_NAME = bound(100, "characters", "of ATen's loops, whose notes in brackets say more than a digest")
OTHER_NAME = bound(160, "characters", "of names that are not of kernels, and of signatures that were cut off")
BRACKETS = bound(40, "brackets", "within brackets that are read")
SCOPES_LEFT_OUT = bound(10, "scopes", "of a kernel's own that are left out of its arguments")

# Reading
KEPT_NAME = bound(16_384, "characters", "of a name that are kept; the longest of published traces has 3,028")
ARGUMENTS = bound(256, "arguments", "of a category that are kept; further names are counted in a health note")
CATEGORIES = bound(
    256, "categories", "kept apart; events of further ones are counted in a health note and called other"
)
OTHER_EVENTS = bound(64, "events", "of a chunk beside the plain ones, after which Python reads the rest of it")
PLACES = bound(512, "places", "devices, and streams, that are kept apart")
DIMENSIONS = bound(64, "dimensions", "of a tensor")
CUTS_TRIED = bound(40, "braces", "tried from the end of a chunk to find a cut")
QUICK_CUTS = bound(2, "cuts", "tried before events are read one by one")
SHORT_EVENT = bound(
    64, "bytes", "of a short event; what salvaged values lack of that counts as skipped: reading one takes as long"
)
SALVAGE = bound(
    4, "ratio", "of what is searched in vain to the bytes read, after which only short events are looked for"
)
LAST_SALVAGE = bound(20, "ratio", "of the same for short events, after which the bytes looked at are given up")
UNPACKED_RATIO = bound(100, "ratio", "of unpacked to packed bytes; real traces have 16 to 35")
UNPACKED_BYTES = bound(1 << 25, "bytes", "of what is unpacked, whatever its ratio")
TOML_DOTS = bound(400, "dots", "in a line of TOML: reading a dotted key takes memory by the square of its parts")
DATABASE_RANKS = bound(512, "ranks", "of a database")
SMALL_DATABASE_RANKS = bound(16, "ranks", "of a database, however small")
BYTES_PER_RANK = bound(4096, "bytes", "of a database for each rank of it")
DATABASE_SECONDS = bound(2, "seconds", "of processor time for a database, and one more for so many bytes")
DATABASE_BYTES_PER_SECOND = bound(250_000, "bytes", "of a database that take a second")
LOG_RECORD = bound(2000, "bytes", "of a log in which a record begins")
SNAPSHOT_RATIO = bound(20, "ratio", "of unpacked to packed bytes of a snapshot; real ones have 2 to 14")
SMALL_SNAPSHOT = bound(4 << 20, "bytes", "of what a snapshot unpacks to, whatever its ratio")
PICKLE_BYTES = bound(12, "bytes", "of a pickle for each list or dictionary; torch writes 40 to 50")
PICKLE_CONTAINERS = bound(1000, "containers", "lists and dictionaries that any pickle may have")
MEMORY_DEVICES = bound(1024, "devices", "of a memory snapshot")
MEMORY_POINTS = bound(600, "points", "of a curve of memory")
MEMORY_SITES = bound(8, "call sites", "of a curve of memory that have their own layer")
FILES_SEARCHED = bound(50_000, "files", "below a folder that are searched for sets")

# Processes
TRIES = bound(3, "workers", "that may be killed while they have the same file")
SCHEDULER_S = bound(20, "seconds", "to wait for a scheduler")
PATTERN_S = bound(1.0, "seconds", "of a process for all searches of users' patterns")
PATTERN_NAME_S = bound(0.001, "seconds", "more for each name that is searched")

# Profiles
CALLS = bound(300_000, "calls", "of a file beyond which equal siblings share a node")
SCOPES = bound(1000, "scopes", "in each other, as many as Python's calls; deeper ones are left out")
MODULES = bound(100, "modules", "of a qualified name that is taken apart")
REPLAY_KERNELS = bound(20_000, "kernels", "of a graph up to which replays are aligned with a capture")
COLLECTIVES = bound(100_000, "operations", "of a file that are kept one by one")
EVENTS_OF_LAUNCH = bound(50, "events", "listed for a launch")
IDLE_THREADS = bound(4, "threads", "beside that of the steps whose operators may explain idle time")
PYTHON_FRAMES = bound(3, "frames", "kept around a call; the innermost are usually torch's own")
EMPTY_CELLS = bound(4, "cells", "for each value up to which a table of all is made instead of sorting")
SMALL_TABLE = bound(1 << 12, "cells", "of such a table, however few values there are")
EVENTS_AT_ONCE = bound(1 << 16, "events", "that are added up, or cut into parts of steps, at a time")
NARROW_CODES = bound(1 << 14, "names", "of categories, or of phases, below which 16 bits number them")
EVENTS_TRIMMED = bound(1 << 17, "events", "of a file from which memory is returned between the parts of its profile")
TIMELINE_PIXELS = bound(800, "pixels", "of a timeline; shorter events are merged with their neighbours")
TIMELINE_MARKS = bound(1500, "marks", "of a timeline")
MARK_NAMES = bound(32, "names", "of the events that a mark of a timeline covers, those of the longest")
TIMELINE_STREAMS = bound(8, "streams", "of a timeline, the busiest")
TIMELINE_THREADS = bound(4, "threads", "of a timeline, the busiest")
TIMELINE_DEPTH = bound(4, "levels", "of operators, and of annotations, of a thread")

# Matching
ALIGNED_EDITS = bound(
    600, "edits", "insertions and deletions beyond which an order is not evidence (and costs their square)"
)
SCORED_PAIRS = bound(4_000_000, "pairs", "of work in order that are scored at once, one byte each")
SCORED_WIDTH = bound(
    256, "pieces of work", "of the other side that each is scored with, however long the sequences are"
)
SCORED_NEAR = bound(1024, "pieces of work", "around the place of one that moved that are scored")
PARTNERS_KEPT = bound(32, "pieces of work", "of those that are kept, the most alike")
FUSED_WORDS = bound(128, "words", "of a kernel that count; compilers cut their names much earlier")
OPERATOR_WORDS = bound(16, "words", "in the name of an operator")

# Explanation, gate and history
LEAVES_APART = bound(10_000, "leaves", "of which a tree is built at once; of more, small ones are added up")
PRACTICAL_RUNS = bound(30, "runs", "per side that are recommended: for more, a quieter host is the remedy")
RECOMMENDED_RUNS = bound(1000, "runs", "per side; where more would be needed, they are too noisy")
SUSPECTS = bound(
    2, "commits", "that a bisection tries before halving, which then takes up to twice as many more probes"
)
ROUNDS = bound(5, "rounds", "of a bisection after which step times are given up")
SOURCE_FILES = bound(400, "files", "of a commit that are parsed: 1–10 ms each")
METHODS_ALIKE = bound(5, "methods", "of one name that an attribute may mean; a name that more have means none")
CHANGED_LINES_KEPT = bound(20, "lines", "of code that are kept of a change")

# Flame graph
FRAMES = bound(12_000, "frames", "of a graph; beyond it, the smallest are left out")
SMALL_FRAME = bound(0.001, "part", "of the whole below which a frame is left out, in every quantity and on both sides")
KERNELS_REPLACED = bound(3, "kernels", "of an operator and side that are shown as one replacement")

# Tables and pages
CAUSE_ROWS = bound(10, "rows", "of causes of a screen, a page or a comment; more are one row")
WORK_ROWS = bound(3, "rows", "of changed work that any screen has room for")
TABLE_ROWS = bound(15, "rows", "of a table on a screen, by default")
PAGE_ROWS = bound(30, "rows", "of a table of a page that is not searched")
PAGE_CHANGES = bound(10, "rows", "of changed work, first of all, of a page")
SEARCHED_ROWS = bound(10_000, "rows", "of a table that is searched, with the largest changes")
MEMBERS = bound(12, "members", "of a group and side, or call sites, that are listed, the largest")
COMMENT_LIMITS = bound(40, "rows", "of limits in a comment of GitHub, which has 65,536 characters")
COMMENT_CHANGES = bound(5, "rows", "of changes in it")
ANNOTATIONS = bound(10, "annotations", "per level that GitHub shows for a step of a workflow")
FX_NODES = bound(10, "nodes", "of the FX graph of a variant that are shown")
HISTORY_FAMILIES = bound(6, "families", "of a history that are shown")
CHART_BYTES = bound(2_000_000, "bytes", "of the data of a page's charts")
PAGE_BYTES = bound(3_000_000, "bytes", "of the data of a page before it is compressed; tables get what the rest leaves")
TRACE_BYTES = bound(1_000_000, "bytes", "of the trace that a page hands to Perfetto")
NOTEBOOK_BYTES = bound(1_800_000, "bytes", "of a flame graph in a notebook, which keeps what its cells show")
PERFETTO_EVENTS = bound(500_000, "events", "of a step for Perfetto; beyond it Python functions are left out")
PERFETTO_ROWS = bound(8, "rows", "of a thread or stream for events that overlap; what overlaps on the last is cut")
LEAST_BAR = bound(0.05, "part", "of the step that at least makes a whole bar: small changes have small bars")

# Charts
PANELS = bound(8, "panels", "of a chart: devices, or families of commits")
DOTS = bound(8000, "dots", "of a chart of steps; longer runs are sampled evenly from the shortest step to the longest")
DOTS_OF_RUN = bound(25, "dots", "of a run, at least")
DOTS_OF_SIDE = bound(4000, "dots", "of a side in a chart of steps by number; more are sampled evenly")
LAUNCH_BARS = bound(12, "bars", "of a chart of launches")
RANK_BARS = bound(256, "ranks", "of a side in a chart, the slowest most often")
WORK_BARS = bound(25, "bars", "of parts of work; the rest share one")
OP_BARS = bound(20, "bars", "of operations, by default")
ALL_OP_BARS = bound(400, "bars", "of operations at all, for legibility and the size of the file")
SMALL_BAR = bound(0.005, "part", "of the longer step below which changes share one bar of the waterfall")
FLAT_CHART = bound(0.3, "part", "by which the running total of a waterfall moves if its axis starts at 0")
CHART_LABEL = bound(28, "characters", "of a name beside its bar; the whole name is in the hover")
CHART_TICK = bound(48, "characters", "of a name under its bars")
CHART_HOVER = bound(1200, "characters", "of a hover")
MARK_LINES = bound(8, "lines", "of the text of a mark")
MARK_TEXT = bound(320, "characters", "of a mark's text")

# Dashboard
SETS_LOADED = bound(8, "sets", "that are kept; each takes some MB")
LOADS = bound(16, "loads", "that run or wait, and failed ones whose errors are kept")
LOAD_CLOSE_S = bound(5.0, "seconds", "to wait for a load when the dashboard stops")
SETS_LISTED = bound(1000, "sets", "of a folder that are listed")
COMPARISONS_KEPT = bound(8, "comparisons", "without filters that are kept")
FILTERED_KEPT = bound(24, "comparisons", "with filters that are kept")
TRACES_KEPT = bound(6, "traces", "whose events are kept: one per side, for some tabs of a browser")
STEPS_PREPARED = bound(4, "steps", "whose events are read before they are needed, at the same time")
FILES_READ = bound(2, "files", "whose events are read at the same time")
UPLOADS = bound(16, "files", "that were uploaded; the oldest is removed first")
UPLOADS_AT_ONCE = bound(8, "files", "that are received at the same time, because each occupies a thread")
ITEMS = bound(100, "items", "of a list")
GROUPS_LISTED = bound(6, "groups", "of an operator in its details")
FLAME_LINKS = bound(6, "links", "below a flame graph")
FILTERED_MODULES = bound(60, "modules", "that a link filters by, or a view of a flame graph zooms into")
STEPS_LISTED = bound(2000, "steps", "in a list to choose from")
CONDITIONS = bound(5, "conditions", "of the filter of a column")
FILTER_TEXT = bound(200, "characters", "of a filter")
QUERY = bound(8000, "characters", "of the query of an address")
CONNECTIONS = bound(32, "connections", "that are served at the same time; others wait in the system's queue")
HEAD_S = bound(10.0, "seconds", "until a request has been received, without its content")
CROWDED_HEAD_S = bound(0.25, "seconds", "the same while other connections wait: slow clients give way")
WRONG_TOKENS = bound(20, "tokens", "that are wrong within TOKEN_S, after which answers to more are delayed")
TOKEN_S = bound(60, "seconds", "in which wrong tokens are counted")
TOKEN_DELAY_S = bound(1.0, "seconds", "by which answers to wrong tokens are delayed")
TOKENS_DELAYED = bound(4, "answers", "that are delayed at the same time, because each occupies a thread")

# Server for agents
QUESTIONS = bound(2, "questions", "that are answered at the same time; each may use all cores")
QUESTIONS_WAITING = bound(16, "questions", "that wait")
ANSWER_TOKENS = bound(4000, "tokens", "of a page of an answer")
NEXT_PAGE_TOKENS = bound(200, "tokens", "of the line that says how to get the next page")
AGENT_TEXT = bound(1_000, "characters", "of a text that an agent may give: a command line is limited")
AGENT_TEXTS = bound(100, "texts", "of an argument that an agent may give")
