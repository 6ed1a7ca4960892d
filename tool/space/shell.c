/* Command lines as a shell would split them, as far as constant text shows it: 'cd x && VAR=1 pip install y' is one pip command in
 * folder x. No expansion, no substitution: such words stay as they are written. */
#include "space/private.h"

struct shell {
    arena *a;
    struct install_command_list *out;
    struct env_entry *env;
    size_t env_count, env_capacity;
    str directory;
};

static bool is_operator(char c) { return c == '&' || c == ';' || c == '|' || c == '\n'; }

/* The next word of *rest with its quotes taken off; absent at the end of the line, "" with *op set at an operator. */
static str next_word(arena *a, str *rest, bool *op)
{
    struct buf word = {.a = a};
    bool any = false;
    *op = false;
    size_t i = 0;
    while (i < rest->n && (rest->p[i] == ' ' || rest->p[i] == '\t' ||
                           (rest->p[i] == '\\' && i + 1 < rest->n && rest->p[i + 1] == '\n')))
        i += rest->p[i] == '\\' ? 2 : 1;
    if (i < rest->n && is_operator(rest->p[i])) {
        while (i < rest->n && is_operator(rest->p[i]))
            i++;
        *op = true;
        *rest = str_from_index(*rest, i);
        return S("");
    }
    char quote = 0;
    unsigned substitution = 0; /* depth of $( */
    bool backquoted = false;
    for (; i < rest->n; i++) {
        const char c = rest->p[i];
        const bool inside = quote || substitution || backquoted;
        if (!inside && (c == ' ' || c == '\t' || is_operator(c)))
            break;
        any = true;
        if (c == '`')
            backquoted = !backquoted;
        if (c == '$' && i + 1 < rest->n && rest->p[i + 1] == '(' && quote != '\'')
            substitution++;
        if (c == ')' && substitution && quote != '\'')
            substitution--;
        if (!substitution && !backquoted && (c == '\'' || c == '"') && (quote == 0 || quote == c)) {
            if (quote)
                quote = 0;
            else
                quote = c;
            continue;
        }
        if (c == '\\' && quote != '\'' && i + 1 < rest->n) {
            if (rest->p[++i] != '\n')
                buf_char(&word, rest->p[i]);
            continue;
        }
        buf_char(&word, c);
    }
    *rest = str_from_index(*rest, i);
    return any ? buf_str(&word) : (str){NULL, 0};
}

static bool is_assignment(str word)
{
    const size_t equals = str_find_char(word, '=');
    if (equals == SIZE_MAX || equals == 0)
        return false;
    for (size_t i = 0; i < equals; i++) {
        const char c = word.p[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
              (i > 0 && c >= '0' && c <= '9')))
            return false;
    }
    return true;
}

static bool starts_python(str base)
{
    if (str_eq(base, S("?")))
        return true; /* sys.executable under another name */
    if (!str_starts(base, S("python")))
        return false;
    for (size_t i = 6; i < base.n; i++)
        if (!((base.p[i] >= '0' && base.p[i] <= '9') || base.p[i] == '.'))
            return false;
    return true;
}

static bool is_pip(str base)
{
    if (!str_starts(base, S("pip")))
        return false;
    for (size_t i = 3; i < base.n; i++)
        if (!((base.p[i] >= '0' && base.p[i] <= '9') || base.p[i] == '.'))
            return false;
    return true;
}

static bool is_compiler(str base)
{
    static const str NAMES[] = {S_INIT("g++"),   S_INIT("gcc"),     S_INIT("c++"), S_INIT("cc"),
                                S_INIT("clang"), S_INIT("clang++"), S_INIT("nvcc")};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (str_eq(base, NAMES[i]) ||
            (str_starts(base, NAMES[i]) && base.n > NAMES[i].n && base.p[NAMES[i].n] == '-'))
            return true;
    return false;
}

/* pip install's options that take a value. */
static bool pip_option_has_value(str option)
{
    static const str NAMES[] = {S_INIT("-r"),
                                S_INIT("--requirement"),
                                S_INIT("-c"),
                                S_INIT("--constraint"),
                                S_INIT("-i"),
                                S_INIT("--index-url"),
                                S_INIT("--extra-index-url"),
                                S_INIT("-f"),
                                S_INIT("--find-links"),
                                S_INIT("-t"),
                                S_INIT("--target"),
                                S_INIT("-C"),
                                S_INIT("--config-settings"),
                                S_INIT("--config-setting"),
                                S_INIT("--global-option"),
                                S_INIT("--build-option"),
                                S_INIT("--install-option"),
                                S_INIT("--no-binary"),
                                S_INIT("--only-binary"),
                                S_INIT("--upgrade-strategy"),
                                S_INIT("--prefix"),
                                S_INIT("--root"),
                                S_INIT("--timeout"),
                                S_INIT("--retries"),
                                S_INIT("--proxy"),
                                S_INIT("--cert"),
                                S_INIT("--progress-bar"),
                                S_INIT("--python-version"),
                                S_INIT("--platform"),
                                S_INIT("--abi"),
                                S_INIT("--implementation"),
                                S_INIT("--trusted-host"),
                                S_INIT("--cache-dir"),
                                S_INIT("--log"),
                                S_INIT("--src"),
                                S_INIT("--exists-action"),
                                S_INIT("--report")};
    for (size_t i = 0; i < COUNT(NAMES); i++)
        if (str_eq(option, NAMES[i]))
            return true;
    return false;
}

static void take_pip(arena *a, const struct strs *words, size_t first, struct install_command *command)
{
    for (size_t i = first; i < words->count; i++) {
        const str word = words->items[i];
        if (!str_starts(word, S("-"))) {
            (void)strs_add(a, &command->targets, word);
            continue;
        }
        const bool editable = str_eq(word, S("-e")) || str_eq(word, S("--editable"));
        const bool has_value =
            editable || (pip_option_has_value(word) && str_find_char(word, '=') == SIZE_MAX);
        if (!has_value || i + 1 == words->count) {
            (void)strs_add(a, &command->flags, word);
            continue;
        }
        const str value = words->items[++i];
        if (editable)
            (void)strs_add(a, &command->targets, value);
        else if (str_eq(word, S("-r")) || str_eq(word, S("--requirement")))
            (void)strs_add(a, &command->targets, str_format(a, "-r %.*s", STR_ARG(value)));
        else
            (void)strs_add(a, &command->flags, str_format(a, "%.*s %.*s", STR_ARG(word), STR_ARG(value)));
    }
}

static void take_clone(arena *a, const struct strs *words, size_t first, struct install_command *command)
{
    for (size_t i = first; i < words->count; i++) {
        static const str VALUED[] = {S_INIT("-b"), S_INIT("--branch"), S_INIT("--depth"),
                                     S_INIT("-o"), S_INIT("--origin"), S_INIT("-c"),
                                     S_INIT("-j"), S_INIT("--jobs")};
        bool valued = false;
        for (size_t v = 0; v < COUNT(VALUED); v++)
            valued = valued || str_eq(words->items[i], VALUED[v]);
        if (valued)
            i++;
        else if (!str_starts(words->items[i], S("-")))
            (void)strs_add(a, &command->targets, words->items[i]);
    }
}

/* What a compiler writes: the word behind -o. */
static void take_output(arena *a, const struct strs *words, struct install_command *command)
{
    for (size_t i = 1; i + 1 < words->count; i++)
        if (str_eq(words->items[i], S("-o")))
            (void)strs_add(a, &command->targets, words->items[i + 1]);
}

static size_t skip_wrappers(const struct strs *words)
{
    static const str WRAPPERS[] = {S_INIT("sudo"),    S_INIT("nohup"), S_INIT("time"), S_INIT("exec"),
                                   S_INIT("command"), S_INIT("env"),   S_INIT("nice")};
    size_t first = 0;
    for (; first < words->count; first++) {
        bool wrapper = is_assignment(words->items[first]);
        for (size_t i = 0; i < COUNT(WRAPPERS); i++)
            wrapper = wrapper || str_eq(words->items[first], WRAPPERS[i]);
        if (!wrapper)
            break;
    }
    return first;
}

static bool word_is(const struct strs *words, size_t i, str text)
{
    return i < words->count && str_eq(words->items[i], text);
}

static void classify(arena *a, const struct strs *words, struct install_command *command)
{
    size_t first = skip_wrappers(words);
    if (first == words->count)
        return;
    str base = path_base(words->items[first]);
    if (str_eq(base, S("uv")) && word_is(words, first + 1, S("pip")))
        base = path_base(words->items[++first]);
    if (starts_python(base) && word_is(words, first + 1, S("-m")) && first + 2 < words->count &&
        is_pip(words->items[first + 2])) {
        first += 2;
        base = S("pip");
    }
    if (is_pip(base) && word_is(words, first + 1, S("install"))) {
        command->kind = INSTALL_PIP;
        take_pip(a, words, first + 2, command);
    } else if (starts_python(base) && first + 1 < words->count &&
               str_eq(path_base(words->items[first + 1]), S("setup.py"))) {
        command->kind = INSTALL_SETUP_PY;
        (void)strs_add(a, &command->targets, path_dir(words->items[first + 1]));
    } else if ((str_eq(base, S("bash")) || str_eq(base, S("sh"))) && first + 1 < words->count &&
               str_ends(words->items[first + 1], S(".sh"))) {
        command->kind = INSTALL_SCRIPT;
        (void)strs_add(a, &command->targets, words->items[first + 1]);
    } else if (str_ends(base, S(".sh"))) {
        command->kind = INSTALL_SCRIPT;
        (void)strs_add(a, &command->targets, words->items[first]);
    } else if (is_compiler(base)) {
        command->kind = INSTALL_COMPILER;
        take_output(a, words, command);
    } else if (str_eq(base, S("git")) && word_is(words, first + 1, S("clone"))) {
        command->kind = INSTALL_GIT_CLONE;
        take_clone(a, words, first + 2, command);
    }
}

bool argv_command(arena *a, const struct strs *words, str directory, struct install_command_list *out)
{
    if (words->count == 0)
        return true;
    if (!arena_room(a, out))
        return false;
    struct install_command *command = &out->items[out->count++];
    *command = (struct install_command){.words = *words, .directory = directory, .kind = INSTALL_OTHER};
    classify(a, words, command);
    return true;
}

static bool finish_command(struct shell *s, struct strs *words)
{
    const struct strs command = *words;
    *words = (struct strs){0};
    if (command.count >= 2 && str_eq(command.items[0], S("cd"))) {
        s->directory = s->directory.n ? path_join(s->a, s->directory, command.items[1]) : command.items[1];
        return true;
    }
    for (size_t i = 0; i < command.count && is_assignment(command.items[i]); i++) {
        str name, value;
        (void)str_cut(command.items[i], '=', &name, &value);
        if (!arena_room_for(s->a, (void *)&s->env, s->env_count, &s->env_capacity, sizeof *s->env, 1))
            return false;
        s->env[s->env_count++] = (struct env_entry){name, value};
    }
    return argv_command(s->a, &command, s->directory, s->out);
}

bool shell_commands(arena *a, str line, str directory, struct install_command_list *out,
                    struct env_entry **env, size_t *env_count)
{
    struct shell s = {.a = a, .out = out, .directory = directory};
    struct strs words = {0};
    bool op;
    for (str word = next_word(a, &line, &op); word.p; word = next_word(a, &line, &op)) {
        if (op ? !finish_command(&s, &words) : !strs_add(a, &words, word))
            return false;
    }
    if (!finish_command(&s, &words))
        return false;
    *env = s.env;
    *env_count = s.env_count;
    return true;
}
