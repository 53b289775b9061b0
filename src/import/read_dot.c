/* read_dot.c: the DOT language, as far as graphs need it:
 *   - digraph only, strict or not;
 *   - node and edge statements with attribute lists, several edges in a row (a -> b -> c);
 *   - defaults (`node [size=4]`);
 *   - subgraphs: their statements count, their grouping does not;
 *   - ports, all three comment styles, quoted and HTML identifiers.
 *
 * A node is an op with one value. Its attributes: `size` in bytes (required), `cost`, `phase`
 * (forward, backward), and `label`, its name. Nodes are numbered as they appear; dag.c orders them.
 *
 * Method: recursive descent over one token of look-ahead, with nesting limited. Cost: O(bytes), and
 * what dag.c takes. */
#include "import/input.h"
#include "import/names.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 100 };

typedef enum token_kind {
    END,
    WORD,
    ARROW,
    LINE, /* --, an undirected edge */
    PUNCT
} token_kind;
typedef struct token {
    token_kind kind;
    const char *text;
    char punct;
    bool bare; /* not quoted, so it may be a keyword */
    size_t line;
} token;

typedef struct attributes {
    int64_t size, cost;
    uint8_t phase;
    const char *label; /* NULL: none */
} attributes;

typedef struct parser {
    remat_ctx *ctx;
    const char *at;
    size_t line;
    token next;
    attributes defaults;
    RM_VEC(rm_dag_node) nodes;
    RM_VEC(rm_dag_edge) edges;
    rm_names index_of;
    unsigned depth;
} parser;

static remat_status fail(parser *p, size_t line, const char *what, const char *detail)
{
    char place[40];
    snprintf(place, sizeof place, "line %zu", line);
    return rm_fail_at(p->ctx, REMAT_E_INPUT, place, "%s%s%.60s%s", what, *detail ? " '" : "",
                      detail, *detail ? "'" : "");
}

/* ---- tokens ---- */

/* A comment between slash and star. */
static remat_status skip_comment(parser *p)
{
    const size_t begin = p->line;
    for (p->at += 2; !(p->at[0] == '*' && p->at[1] == '/'); p->at++) {
        if (*p->at == '\0') return fail(p, begin, "a comment does not end", "");
        if (*p->at == '\n') p->line++;
    }
    p->at += 2;
    return REMAT_OK;
}

static remat_status skip_blanks(parser *p)
{
    for (;;) {
        const char c = p->at[0];
        if (c == '\n') p->line++;
        if (c == '\n' || c == ' ' || c == '\t' || c == '\r') p->at++;
        else if (c == '#' || (c == '/' && p->at[1] == '/')) p->at += strcspn(p->at, "\n");
        else if (c == '/' && p->at[1] == '*') TRY(skip_comment(p));
        else return REMAT_OK;
    }
}

static remat_status quoted(parser *p)
{
    const size_t begin = p->line;
    const char *from = ++p->at;
    for (; *p->at != '"'; p->at++) {
        if (*p->at == '\0') return fail(p, begin, "a string does not end", "");
        if (*p->at == '\\' && p->at[1]) p->at++;
        if (*p->at == '\n') p->line++;
    }
    char *text = rm_scratch(p->ctx, (size_t)(p->at - from) + 1, 1), *to = text;
    if (!text) return REMAT_E_MEMORY;
    for (; from < p->at; from++) {
        if (from[0] == '\\' && (from[1] == '"' || from[1] == '\\')) from++;
        *to++ = *from;
    }
    p->at++;
    p->next = (token){WORD, text, 0, false, begin};
    return REMAT_OK;
}

static remat_status slice(parser *p, const char *end, bool bare)
{
    const size_t n = (size_t)(end - p->at);
    char *text = rm_scratch(p->ctx, n + 1, 1);
    if (!text) return REMAT_E_MEMORY;
    memcpy(text, p->at, n);
    p->at = end;
    p->next = (token){WORD, text, 0, bare, p->line};
    return REMAT_OK;
}

static remat_status html(parser *p)
{
    const size_t begin = p->line;
    size_t depth = 0;
    const char *end = p->at;
    do {
        if (*end == '\0') return fail(p, begin, "an HTML string does not end", "");
        depth += *end == '<';
        depth -= *end == '>';
        p->line += *end == '\n';
        end++;
    } while (depth);
    return slice(p, end, false);
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

/* Reads the next token. */
static remat_status advance(parser *p)
{
    TRY(skip_blanks(p));
    const char c = *p->at;
    p->next = (token){END, "end of file", 0, false, p->line};
    if (c == '\0') return REMAT_OK;
    if (c == '"') return quoted(p);
    if (c == '<') return html(p);
    if (c == '-' && (p->at[1] == '>' || p->at[1] == '-')) {
        const bool arrow = p->at[1] == '>';
        p->next = (token){arrow ? ARROW : LINE, arrow ? "->" : "--", 0, false, p->line};
        p->at += 2;
        return REMAT_OK;
    }
    if (is_word_char(c) || c == '-') {
        const char *end = p->at + 1;
        while (is_word_char(*end)) end++;
        return slice(p, end, true);
    }
    static const char punctuation[] = "{}[]=;,:";
    const char *mark = strchr(punctuation, c);
    if (mark) {
        static const char *const names[] = {"{", "}", "[", "]", "=", ";", ",", ":"};
        p->next = (token){PUNCT, names[mark - punctuation], c, false, p->line};
        p->at++;
        return REMAT_OK;
    }
    const char text[2] = {c, 0};
    return fail(p, p->line, "unexpected character", text);
}

static bool is_punct(const parser *p, char c)
{
    return p->next.kind == PUNCT && p->next.punct == c;
}

/* Keywords may be written in any case. */
static bool is_keyword(const token *t, const char *word)
{
    if (t->kind != WORD || !t->bare || strlen(t->text) != strlen(word)) return false;
    for (size_t i = 0; word[i]; i++)
        if ((t->text[i] | 0x20) != word[i]) return false;
    return true;
}

static remat_status expect(parser *p, char c)
{
    const char text[2] = {c, 0};
    if (is_punct(p, c)) return advance(p);
    char what[40];
    snprintf(what, sizeof what, "expected '%s' before", text);
    return fail(p, p->next.line, what, p->next.text);
}

static remat_status word(parser *p, const char **text)
{
    if (p->next.kind != WORD) return fail(p, p->next.line, "expected a name before", p->next.text);
    *text = p->next.text;
    return advance(p);
}

/* ---- nodes ---- */

static remat_status node_named(parser *p, const char *name, uint32_t *out)
{
    *out = rm_names_find(&p->index_of, name);
    if (*out != REMAT_NONE) return REMAT_OK;
    if (p->nodes.n >= REMAT_NONE - 2) return fail(p, p->line, "too many nodes", "");
    const rm_dag_node node = {name, p->defaults.size, p->defaults.cost, p->defaults.phase};
    TRY(RM_PUSH(p->ctx, p->nodes, node));
    *out = (uint32_t)p->nodes.n - 1;
    return rm_names_add(p->ctx, &p->index_of, name, *out);
}

/* ---- attributes ---- */

static remat_status number(parser *p, const char *key, const char *text, size_t line, int64_t *out)
{
    int64_t x = 0;
    bool ok = *text != '\0';
    for (const char *c = text; *c && ok; c++)
        ok = *c >= '0' && *c <= '9' && !rm_mul_overflows(x, (int64_t)10, &x) &&
             !rm_add_overflows(x, (int64_t)(*c - '0'), &x);
    if (!ok) {
        char what[60];
        snprintf(what, sizeof what, "%s must be a whole number below 2^63, not", key);
        return fail(p, line, what, text);
    }
    *out = x;
    return REMAT_OK;
}

static remat_status attribute(parser *p, attributes *a)
{
    const char *key = "", *value = "true";
    const size_t line = p->next.line;
    TRY(word(p, &key));
    if (is_punct(p, '=')) {
        TRY(advance(p));
        TRY(word(p, &value));
    }
    if (!a) return REMAT_OK;
    if (strcmp(key, "size") == 0) return number(p, key, value, line, &a->size);
    if (strcmp(key, "cost") == 0) return number(p, key, value, line, &a->cost);
    if (strcmp(key, "label") == 0) a->label = value;
    if (strcmp(key, "phase") == 0) {
        if (strcmp(value, "forward") == 0) a->phase = REMAT_FORWARD;
        else if (strcmp(value, "backward") == 0) a->phase = REMAT_BACKWARD;
        else return fail(p, line, "phase must be forward or backward, not", value);
    }
    return REMAT_OK;
}

/* Zero or more [ ... ] lists; `a` NULL: read and ignore. */
static remat_status attribute_lists(parser *p, attributes *a)
{
    while (is_punct(p, '[')) {
        TRY(advance(p));
        while (!is_punct(p, ']')) {
            TRY(attribute(p, a));
            if (is_punct(p, ',') || is_punct(p, ';')) TRY(advance(p));
        }
        TRY(advance(p));
    }
    return REMAT_OK;
}

/* ---- statements ---- */

static remat_status statements(parser *p);

static remat_status endpoint(parser *p, uint32_t *node)
{
    const char *name = "";
    if (is_punct(p, '{') || is_keyword(&p->next, "subgraph"))
        return fail(p, p->next.line, "an edge to or from a subgraph is not supported", "");
    TRY(word(p, &name));
    TRY(node_named(p, name, node));
    while (is_punct(p, ':')) { /* port, compass point */
        TRY(advance(p));
        TRY(word(p, &name));
    }
    return REMAT_OK;
}

static remat_status node_attributes(parser *p, uint32_t node)
{
    rm_dag_node *n = &p->nodes.items[node]; /* lists add no nodes: it stays where it is */
    attributes a = {n->size, n->cost, n->phase, NULL};
    TRY(attribute_lists(p, &a));
    *n = (rm_dag_node){a.label ? a.label : n->name, a.size, a.cost, a.phase};
    return REMAT_OK;
}

static remat_status node_or_edge(parser *p)
{
    const parser before = *p;
    uint32_t node, from;
    TRY(advance(p));
    if (is_punct(p, '=')) { /* graph attribute: name = value */
        const char *ignored;
        TRY(advance(p));
        return word(p, &ignored);
    }
    p->next = before.next; /* no second token of look-ahead: go back */
    p->at = before.at;
    p->line = before.line;
    TRY(endpoint(p, &node));
    if (p->next.kind != ARROW && p->next.kind != LINE) return node_attributes(p, node);
    while (p->next.kind == ARROW || p->next.kind == LINE) {
        if (p->next.kind == LINE)
            return fail(p, p->next.line, "undirected edges (--) are not supported", "");
        TRY(advance(p));
        from = node;
        TRY(endpoint(p, &node));
        const rm_dag_edge edge = {from, node};
        TRY(RM_PUSH(p->ctx, p->edges, edge));
    }
    return attribute_lists(p, NULL);
}

static remat_status subgraph(parser *p)
{
    if (is_keyword(&p->next, "subgraph")) {
        TRY(advance(p));
        if (p->next.kind == WORD) TRY(advance(p));
    }
    if (++p->depth > MAX_DEPTH) return fail(p, p->next.line, "subgraphs are nested too deeply", "");
    TRY(expect(p, '{'));
    const attributes outer = p->defaults;
    TRY(statements(p));
    p->defaults = outer;
    p->depth--;
    TRY(expect(p, '}'));
    if (p->next.kind == ARROW)
        return fail(p, p->next.line, "an edge to or from a subgraph is not supported", "");
    return REMAT_OK;
}

static remat_status statements(parser *p)
{
    while (!is_punct(p, '}')) {
        if (p->next.kind == END) return fail(p, p->next.line, "expected '}' before", p->next.text);
        if (is_punct(p, ';')) TRY(advance(p));
        else if (is_punct(p, '{') || is_keyword(&p->next, "subgraph")) TRY(subgraph(p));
        else if (is_keyword(&p->next, "node")) {
            TRY(advance(p));
            TRY(attribute_lists(p, &p->defaults));
        } else if (is_keyword(&p->next, "graph") || is_keyword(&p->next, "edge")) {
            TRY(advance(p));
            TRY(attribute_lists(p, NULL));
        } else TRY(node_or_edge(p));
    }
    return REMAT_OK;
}

static remat_status file(parser *p, remat_builder *b)
{
    TRY(advance(p));
    if (is_keyword(&p->next, "strict")) TRY(advance(p));
    if (is_keyword(&p->next, "graph"))
        return fail(p, p->next.line, "an undirected graph: a digraph is needed", "");
    if (!is_keyword(&p->next, "digraph"))
        return fail(p, p->next.line, "neither JSON nor DOT: expected 'digraph' before",
                    p->next.text);
    TRY(advance(p));
    if (p->next.kind == WORD) {
        b->name = rm_builder_text(b, p->next.text);
        TRY(advance(p));
    }
    TRY(expect(p, '{'));
    TRY(statements(p));
    TRY(expect(p, '}'));
    if (p->next.kind != END) return fail(p, p->next.line, "text after the graph:", p->next.text);
    return REMAT_OK;
}

static remat_status build(parser *p, remat_builder *b)
{
    size_t with_cost = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        if (p->nodes.items[i].size == REMAT_ABSENT)
            return rm_fail(p->ctx, REMAT_E_INPUT, "node '%.60s' has no size",
                           p->nodes.items[i].name);
        with_cost += p->nodes.items[i].cost != REMAT_ABSENT;
    }
    b->cost_unit = rm_builder_text(b, with_cost ? "given" : "");
    const rm_dag dag = {p->nodes.items, p->edges.items, p->nodes.n, p->edges.n, NULL};
    return rm_dag_build(p->ctx, &dag, b);
}

remat_status rm_read_dot(remat_ctx *ctx, const remat_input *input, remat_builder *b)
{
    parser p = {.ctx = ctx,
                .at = input->text,
                .line = 1,
                .defaults = {REMAT_ABSENT, REMAT_ABSENT, REMAT_PHASE_NONE, NULL}};
    remat_status status = file(&p, b);
    if (status == REMAT_OK) status = build(&p, b);
    RM_VEC_FREE(&ctx->heap, p.nodes);
    RM_VEC_FREE(&ctx->heap, p.edges);
    return status;
}
