package web

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
)

//go:embed locales/*.json
var localeFiles embed.FS

// catalogue holds every sentence of one language: flat keys, placeholders like
// {client}, plurals as two keys that end in .one and .other. It holds no markup.
type catalogue map[string]string

func loadCatalogue(language string) (catalogue, error) {
	raw, err := localeFiles.ReadFile("locales/" + language + ".json")
	if err != nil {
		return nil, fmt.Errorf("web: language %s: %w", language, err)
	}
	var c catalogue
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("web: language %s: %w", language, err)
	}
	return c, nil
}

// html returns the sentence with its placeholders filled in: args are name and
// value pairs. The sentence and every value are escaped, but for values that
// are template.HTML already. A missing key or value is an error, which tests
// meet before people do.
func (c catalogue) html(key string, args ...any) (template.HTML, error) {
	s, err := c.fill(key, args, func(v any) string {
		if h, ok := v.(template.HTML); ok {
			return string(h)
		}
		return template.HTMLEscapeString(clean(fmt.Sprint(v)))
	}, template.HTMLEscapeString)
	return template.HTML(s), err
}

// text is html for a <title> or an attribute: plain, escaped where it is used.
func (c catalogue) text(key string, args ...any) (string, error) {
	return c.fill(key, args, func(v any) string { return clean(fmt.Sprint(v)) }, func(s string) string { return s })
}

// plural picks key.one or key.other by n, which is the placeholder {n} as well.
func (c catalogue) plural(key string, n int, args ...any) (template.HTML, error) {
	form := ".other"
	if n == 1 {
		form = ".one"
	}
	return c.html(key+form, append(args, "n", strconv.Itoa(n))...)
}

func (c catalogue) fill(key string, args []any, value func(any) string, literal func(string) string) (string, error) {
	rest, ok := c[key]
	if !ok {
		return "", fmt.Errorf("catalogue has no key %q", key)
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(rest, "{")
		b.WriteString(literal(before))
		if !found {
			return b.String(), nil
		}
		name, tail, closed := strings.Cut(after, "}")
		v, given := argument(args, name)
		if !closed || !given {
			return "", fmt.Errorf("catalogue key %q: placeholder %q has no value", key, name)
		}
		b.WriteString(value(v))
		rest = tail
	}
}

func argument(args []any, name string) (any, bool) {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i] == name {
			return args[i+1], true
		}
	}
	return nil, false
}
