"""Envelopes: the paths that are read, as the tables that json_walk follows, and the draft's lifecycle. Part of
``_parser.pyx``; twin of ``_envelope_py.py``."""


cdef enum:
    KIND_TEXT = 0
    KIND_REASONING = 1
    KIND_ARGUMENTS = 2
    MAX_CONSTANTS = 8

cdef struct Constant:
    short leaf
    unsigned char kind  # JSON_STRING, JSON_TRUE, JSON_FALSE
    pointer text
    size_t size


cdef struct FormTable:
    int kind
    short content
    short index
    short call
    short input_tokens
    short output_tokens
    unsigned long long absent
    unsigned long long empty
    unsigned long long items  # those of absent that are items of an array
    int constant_count
    Constant constants[MAX_CONSTANTS]


@cython.final
cdef class Tables:
    """A Declaration in the form that the walk reads; made once for each."""

    cdef json_node *nodes
    cdef json_edge *edges
    cdef FormTable *forms
    cdef int form_count
    cdef list keys  # keeps the bytes of keys and constants alive

    def __cinit__(self, declaration):
        self.keys = []
        all_nodes = []
        queue = [declaration.root]
        while queue:
            node = queue.pop(0)
            all_nodes.append(node)
            queue.extend(node.children.values())
        edge_total = sum(len(node.steps()) for node in all_nodes)
        if edge_total > 64:
            raise ValueError("more than 64 steps on declared paths")
        self.nodes = <json_node *> malloc(max(len(all_nodes), 1) * sizeof(json_node))
        self.edges = <json_edge *> malloc(max(edge_total, 1) * sizeof(json_edge))
        self.forms = <FormTable *> malloc(max(len(declaration.forms), 1) * sizeof(FormTable))
        if self.nodes == NULL or self.edges == NULL or self.forms == NULL:
            raise MemoryError()
        self._fill_nodes(all_nodes)
        for number, form in enumerate(declaration.forms):
            self._fill_form(&self.forms[number], form)
        self.form_count = len(declaration.forms)

    def __dealloc__(self):
        free(self.nodes)
        free(self.edges)
        free(self.forms)

    cdef int _fill_nodes(self, list all_nodes) except -1:
        numbers = {id(node): number for number, node in enumerate(all_nodes)}
        first = {}
        cdef int at = 0
        cdef json_edge *edge
        for number, node in enumerate(all_nodes):
            steps = node.steps()
            first[number] = at
            self.nodes[<int> number].first_edge = at
            self.nodes[<int> number].edge_count = len(steps)
            self.nodes[<int> number].is_array = node.is_array
            at += len(steps)

        def edges_below(node):
            found = 0
            start = first[numbers[id(node)]]
            for place, step in enumerate(node.steps()):
                found |= 1 << (start + place)
                if step in node.children:
                    found |= edges_below(node.children[step])
            return found

        for number, node in enumerate(all_nodes):
            for place, step in enumerate(node.steps()):
                edge = &self.edges[<int> (first[number] + place)]
                memset(edge, 0, sizeof(json_edge))
                if node.is_array:
                    edge.item = step
                else:
                    edge.key = self._text(step)
                    edge.key_length = len(<bytes> self.keys[len(self.keys) - 1])
                    if '"' not in step and "\\" not in step and min(step, default="x") >= " ":
                        edge.item = JSON_PLAIN_KEY
                edge.leaf = node.leaves.get(step, -1)
                child = node.children.get(step)
                edge.child = -1 if child is None else numbers[id(child)]
                edge.leaves_below = sum(1 << leaf for leaf in node.below(step))
                edge.edges_below = 0 if child is None else edges_below(child)
            if not node.is_array:
                json_link(&self.nodes[<int> number], self.edges)
        return 0

    cdef int _fill_form(self, FormTable *table, form) except -1:
        memset(table, 0, sizeof(FormTable))
        table.kind = ("text", "reasoning", "arguments").index(form.kind)
        table.content = form.content
        table.index = form.index
        table.call = form.call
        table.input_tokens = form.input_tokens
        table.output_tokens = form.output_tokens
        table.absent = sum({1 << leaf for leaf in form.absent})
        table.empty = sum({1 << leaf for leaf in form.empty})
        table.items = sum({1 << leaf for leaf in form.items})
        if len(form.when) > MAX_CONSTANTS:
            raise ValueError(f"more than {MAX_CONSTANTS} constants in a Delta")
        table.constant_count = len(form.when)
        cdef Constant *constant
        for place, (leaf, value) in enumerate(form.when):
            constant = &table.constants[<int> place]
            constant.leaf = leaf
            if isinstance(value, str):
                constant.kind = JSON_STRING
                constant.text = self._text(value)
                constant.size = len(<bytes> self.keys[len(self.keys) - 1])
            else:
                constant.kind = JSON_TRUE if value else JSON_FALSE
        return 0

    cdef pointer _text(self, text) except NULL:
        cdef bytes kept = text.encode()
        self.keys.append(kept)
        return <pointer> PyBytes_AS_STRING(kept)


cdef Tables _tables_of(declaration):
    if declaration.compiled is None:
        declaration.compiled = Tables(declaration)
    return declaration.compiled


cdef enum:
    LEAF_V = 0
    LEAF_SEQ
    LEAF_TYPE
    LEAF_INDEX
    LEAF_ROLE
    LEAF_DELTA
    LEAF_TEXT
    LEAF_MODEL
    LEAF_CREATED
    LEAF_REQUEST_ID
    LEAF_STOP_REASON
    LEAF_ID
    LEAF_NAME
    LEAF_ARGUMENTS
    LEAF_INPUT_TOKENS
    LEAF_OUTPUT_TOKENS
    LEAF_CODE
    LEAF_MESSAGE

cdef enum:
    EVENT_START = 0
    EVENT_DELTA
    EVENT_STOP
    EVENT_TOOL_CALL
    EVENT_USAGE
    EVENT_ERROR
    EVENT_END
    EVENT_UNKNOWN

cdef enum:
    STATE_NEW = 0
    STATE_STREAMING
    STATE_ERRORED
    STATE_ENDED

_ENVELOPE_PATHS = (
    "v",
    "seq",
    "type",
    "index",
    "role",
    "delta",
    "delta.text",
    "model",
    "created",
    "request_id",
    "stop_reason",
    "id",
    "name",
    "arguments",
    "input_tokens",
    "output_tokens",
    "code",
    "message",
)
_ENVELOPE = Declaration(paths=_ENVELOPE_PATHS)

cdef unsigned char _next_state[4][8]
cdef int _broken_rule[4][8]


cdef int _load_lifecycle() except -1:
    for number, state in enumerate(rules.STATES):
        for kind, (following, rule) in enumerate(rules.LIFECYCLE[state]):
            _next_state[<int> number][<int> kind] = rules.STATES.index(following)
            _broken_rule[<int> number][<int> kind] = rule
    return 0


_load_lifecycle()


cdef inline bint _is(pointer data, size_t size, const char *word, size_t word_size) noexcept nogil:
    return size == word_size and memcmp(data, word, word_size) == 0


cdef int _kind_of(pointer name, size_t size) noexcept nogil:
    if _is(name, size, b"content.delta", 13):
        return EVENT_DELTA
    if _is(name, size, b"stream.start", 12):
        return EVENT_START
    if _is(name, size, b"content.stop", 12):
        return EVENT_STOP
    if _is(name, size, b"tool.call", 9):
        return EVENT_TOOL_CALL
    if _is(name, size, b"usage", 5):
        return EVENT_USAGE
    if _is(name, size, b"error", 5):
        return EVENT_ERROR
    if _is(name, size, b"stream.end", 10):
        return EVENT_END
    return EVENT_UNKNOWN
