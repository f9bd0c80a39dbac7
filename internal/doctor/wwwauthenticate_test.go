package doctor

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseChallenges(t *testing.T) {
	t.Parallel()
	type params = map[string]string
	for _, tt := range []struct {
		name, value string
		want        []challenge
	}{
		{"bare scheme", "Bearer", []challenge{{"Bearer", params{}}}},
		{"token and quoted values", `Bearer realm=a, scope="x y"`, []challenge{{"Bearer", params{"realm": "a", "scope": "x y"}}}},
		{"names in any case", `bearer Error="invalid_token"`, []challenge{{"bearer", params{"error": "invalid_token"}}}},
		{"escapes", `Bearer a="\"b\\"`, []challenge{{"Bearer", params{"a": `"b\`}}}},
		{"comma in quotes", `Bearer a="b, Basic c=d"`, []challenge{{"Bearer", params{"a": "b, Basic c=d"}}}},
		{"two challenges", `Basic realm="x", Bearer scope="y"`, []challenge{{"Basic", params{"realm": "x"}}, {"Bearer", params{"scope": "y"}}}},
		{"token68", `Negotiate YWJj==, Bearer a=b`, []challenge{{"Negotiate", params{}}, {"Bearer", params{"a": "b"}}}},
		{"spaces around =", `Bearer a = "b" , c=d`, []challenge{{"Bearer", params{"a": "b", "c": "d"}}}},
		{"empty elements", `, Bearer a=b,, c=d,`, []challenge{{"Bearer", params{"a": "b", "c": "d"}}}},
		{"empty", "", nil},
		{"quote that does not end", `Bearer a="b`, nil},
		{"URL without quotes", `Bearer a=https://b`, nil},
		{"no comma", `Bearer a="b" c="d"`, nil},
		{"twice", `Bearer a=b, a=c`, nil},
		{"no value", `Bearer a=b, c=`, nil},
		{"no scheme", `="x"`, nil},
		{"without end", strings.Repeat("A b=c, ", 100), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseChallenges(tt.value)
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(challenge{})); d != "" || (err != nil) != (tt.want == nil) {
				t.Errorf("%v (-want +got)\n%s", err, d)
			}
			if err != nil && !errors.Is(err, errChallenge) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Any header is read to its end or refused, in bounded work.
func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{"Bearer", `Bearer a="b", c=d`, `Basic YWJj=`, `Bearer a="`, ",,,", `Bearer a="\`, "Bearer \x00=x", `A B C d=e`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		list, err := parseChallenges(value)
		if (err == nil) != (len(list) > 0) || len(list) > maxChallenges {
			t.Errorf("%d challenges, %v", len(list), err)
		}
		for _, c := range list {
			if c.scheme == "" || c.params == nil {
				t.Errorf("challenge %+v", c)
			}
		}
	})
}
