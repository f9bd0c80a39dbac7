package config

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/ostiary-auth/ostiary/internal/oauth"
	"github.com/ostiary-auth/ostiary/internal/store"
)

// Field is one setting as an operator spells it.
type Field struct {
	// Key is its name in the file, Env the environment variable.
	Key, Env string
	// Name is the field of Config.
	Name string
}

// Fields returns every setting in the order of Config.
func Fields() []Field {
	t := reflect.TypeFor[Config]()
	var list []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if key := f.Tag.Get("yaml"); key != "" {
			list = append(list, Field{Key: key, Env: EnvPrefix + f.Tag.Get("env"), Name: f.Name})
		}
	}
	return list
}

func fieldNamed(name string) Field {
	for _, f := range Fields() {
		if f.Name == name {
			return f
		}
	}
	return Field{Key: name}
}

// Value is one setting with its value for people: secrets are redacted.
type Value struct {
	Field
	// Text is the value; Go's form of durations, booleans and numbers, lists
	// joined by commas.
	Text string
	// Origin is where it came from.
	Origin Origin
}

// Values returns every setting with its value, without any secret.
func (c *Config) Values() []Value {
	v := reflect.ValueOf(c).Elem()
	var list []Value
	for _, f := range Fields() {
		text := ""
		switch x := v.FieldByName(f.Name).Interface().(type) {
		case oauth.Secret:
			if x != "" {
				text = x.String()
			}
		case []string:
			text = strings.Join(x, ",")
		default:
			text = fmt.Sprint(x)
		}
		switch f.Key {
		case "database":
			text = redactURL(c.DatabaseURL())
		case "outbound_proxy":
			text = redactProxy(text)
		}
		list = append(list, Value{Field: f, Text: text, Origin: c.origins[f.Key]})
	}
	return list
}

// Origin tells where the value of key came from; the zero Origin is the default.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// redactURL hides the passwords of a PostgreSQL URL: before the @ and among the
// parameters, where libpq takes them too.
func redactURL(raw string) string {
	if !store.IsPostgresURL(raw) {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "postgres://[redacted]"
	}
	q := u.Query()
	for _, name := range []string{"password", "sslpassword"} {
		if q.Has(name) {
			q.Set(name, "xxxxx")
		}
	}
	if len(q) > 0 {
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// redactProxy hides the password of the proxy.
func redactProxy(raw string) string {
	if u, err := url.Parse(raw); err == nil {
		return u.Redacted()
	}
	return "[redacted]"
}

// nearest returns the key, or the one of more, that is most like word, or ""
// when none is.
func nearest(word string, more ...string) string {
	keys := more
	for _, f := range Fields() {
		keys = append(keys, f.Key)
	}
	best, at := "", max(3, len(word)/4+1) // up to two letters wrong, or a quarter of them
	for _, key := range keys {
		if d := distance(word, key); d < at {
			best, at = key, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
