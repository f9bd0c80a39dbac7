package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/caarlos0/env/v11"
	"go.yaml.in/yaml/v3"
)

// EnvPrefix begins the name of every environment variable of ours.
const EnvPrefix = "OSTIARY_"

// maxFile bounds the configuration file, in bytes.
const maxFile = 1 << 20

// Source is where Load reads.
type Source struct {
	// File is the path of the configuration file; "" means OSTIARY_CONFIG, and
	// without that no file.
	File string
	// Environ is the environment, as os.Environ returns it.
	Environ []string
	// Flags are the values given on the command line, by key.
	Flags map[string]string
}

// Origin is where a value came from.
type Origin struct {
	// Kind is "file", "environment", "flag" or, for the zero Origin, "".
	Kind string
	// Name is the file, the variable or the flag.
	Name string
	// Line is the line in the file.
	Line int
}

// String names the origin for people: "ostiary.yaml line 3", "OSTIARY_ISSUER".
func (o Origin) String() string {
	switch {
	case o.Kind == "":
		return "default"
	case o.Line > 0:
		return fmt.Sprintf("%s line %d", o.Name, o.Line)
	}
	return o.Name
}

// Load reads every source and checks the result. All that is wrong comes back
// at once as Mistakes, with the configuration as far as it could be read.
func Load(s Source) (*Config, error) {
	c := Default()
	c.origins = map[string]Origin{}
	environ := environMap(s.Environ)
	var all Mistakes
	if s.File == "" {
		s.File = environ[EnvPrefix+"CONFIG"]
	}
	if s.File != "" {
		all = append(all, c.readFile(s.File)...)
	}
	all = append(all, c.readEnvironment(environ)...)
	all = append(all, unknownVariables(environ)...)
	all = append(all, c.readFlags(s.Flags)...)
	all = append(all, c.resolve(environ)...)
	return c, append(all, c.mistakes(all)...).orNil()
}

// readFile decodes the YAML file strictly: an unknown key is a mistake.
func (c *Config) readFile(path string) Mistakes {
	data, err := readBounded(path)
	if err != nil {
		return Mistakes{{Key: "config", Problem: err.Error(), Fix: "name a file that this user can read"}}
	}
	name := filepath.Base(path)
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return Mistakes{{Key: "config", Problem: name + " is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
		for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
			key := doc.Content[0].Content[i]
			c.origins[key.Value] = Origin{Kind: "file", Name: name, Line: key.Line}
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	err = dec.Decode(c)
	if errors.Is(err, io.EOF) {
		return nil // an empty file says nothing
	}
	list := fileMistakes(name, err)
	if dec.Decode(&yaml.Node{}) == nil {
		list = append(list, Mistake{Key: "config", Problem: name + " has a second YAML document", Fix: "keep one, without ---"})
	}
	return list
}

var (
	yamlLine    = regexp.MustCompile(`^line (\d+): (.*)$`)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .*$`)
)

// fileMistakes turns the decoder's error into one mistake a line.
func fileMistakes(name string, err error) Mistakes {
	if err == nil {
		return nil
	}
	var typeError *yaml.TypeError
	if !errors.As(err, &typeError) {
		return Mistakes{{Key: "config", Problem: name + ": " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	var list Mistakes
	for _, text := range typeError.Errors {
		m := Mistake{Key: "config", Problem: text, Origin: Origin{Kind: "file", Name: name}}
		if found := yamlLine.FindStringSubmatch(text); found != nil {
			m.Origin.Line, _ = strconv.Atoi(found[1])
			m.Problem = strings.NewReplacer("!!", "", "config.Config", "the settings", "oauth.Secret", "string",
				"time.Duration", "a duration such as 10m").Replace(found[2])
		}
		if found := yamlUnknown.FindStringSubmatch(m.Problem); found != nil {
			m.Problem = fmt.Sprintf("there is no setting %q", found[1])
			if near := nearest(found[1]); near != "" {
				m.Fix = "did you mean " + near + "?"
			}
		}
		list = append(list, m)
	}
	return list
}

// readEnvironment applies OSTIARY_* variables; an empty one counts as not set.
func (c *Config) readEnvironment(environ map[string]string) Mistakes {
	for _, f := range Fields() {
		if _, ok := environ[f.Env]; ok {
			c.origins[f.Key] = Origin{Kind: "environment", Name: f.Env}
		}
	}
	return c.apply(environ, EnvPrefix)
}

// readFlags applies the command line's values, by key.
func (c *Config) readFlags(flags map[string]string) Mistakes {
	values := map[string]string{}
	for _, f := range Fields() {
		if v, ok := flags[f.Key]; ok {
			values[f.Env] = v
			c.origins[f.Key] = Origin{Kind: "flag", Name: "--" + strings.ReplaceAll(f.Key, "_", "-")}
		}
	}
	return c.apply(values, EnvPrefix)
}

func (c *Config) apply(values map[string]string, prefix string) Mistakes {
	err := env.ParseWithOptions(c, env.Options{Environment: values, Prefix: prefix})
	if err == nil {
		return nil
	}
	var several env.AggregateError
	if !errors.As(err, &several) {
		return Mistakes{{Key: "environment", Problem: err.Error()}}
	}
	var list Mistakes
	for _, err := range several.Errors {
		m := Mistake{Key: "environment", Problem: err.Error()}
		var p env.ParseError
		if errors.As(err, &p) {
			f := fieldNamed(p.Name)
			m = Mistake{Key: f.Key, Origin: c.origins[f.Key], Problem: "is not " + kindName(p.Type)}
		}
		list = append(list, m)
	}
	return list
}

// resolve fills in what depends on the environment: the state directory, and
// the database named in a file.
func (c *Config) resolve(environ map[string]string) Mistakes {
	if c.StateDir == "" {
		c.StateDir = defaultStateDir(environ)
	}
	if c.DatabaseFile == "" {
		return nil
	}
	at := c.origins["database_file"]
	if c.Database != "" {
		return Mistakes{{Key: "database_file", Origin: at, Problem: "is set beside database", Fix: "keep one of them"}}
	}
	data, err := readBounded(c.DatabaseFile)
	if err != nil {
		return Mistakes{{Key: "database_file", Origin: at, Problem: err.Error(), Fix: "name a file that this user can read"}}
	}
	c.Database = strings.TrimSpace(string(data))
	c.origins["database"] = at
	return nil
}

// defaultStateDir is the place of D2: systemd's, else XDG's.
func defaultStateDir(environ map[string]string) string {
	if dirs := environ["STATE_DIRECTORY"]; dirs != "" {
		first, _, _ := strings.Cut(dirs, ":") // systemd.exec(5): several are joined by colons
		return first
	}
	if dir := environ["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "ostiary")
	}
	if home := environ["HOME"]; home != "" {
		return filepath.Join(home, ".local", "state", "ostiary")
	}
	return ""
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, err
}

// environMap leaves out empty values: compose files pass "" for "not set".
func environMap(environ []string) map[string]string {
	m := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" {
			m[k] = v
		}
	}
	return m
}

// kindName says what a value must be.
func kindName(t reflect.Type) string {
	switch {
	case t == nil:
		return "valid"
	case t.String() == "time.Duration":
		return "a duration such as 90s, 10m or 720h"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	}
	return "a " + t.String()
}
