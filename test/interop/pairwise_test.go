package interop

import (
	"testing"
)

// pair is two factors that meet in a cell.
type pair struct {
	i, j int // axes
	a, b string
}

func (c cell) pairs() (list []pair) {
	f := c.factors()
	for i := range f {
		for j := i + 1; j < len(f); j++ {
			list = append(list, pair{i, j, f[i], f[j]})
		}
	}
	return list
}

// pairwise returns few cells in which every pair of factors meets that meets
// anywhere: in a cell that the client passes, where there is one, else in one
// with a limitation that can be observed. Greedy, and the same at each call.
func pairwise(all []cell) (chosen []cell) {
	for _, candidates := range [][]cell{passable(all), observable(all)} {
		open := map[pair]bool{}
		for _, c := range candidates {
			for _, p := range c.pairs() {
				open[p] = true
			}
		}
		for _, c := range chosen {
			cover(open, c)
		}
		for len(open) > 0 {
			best := best(candidates, open, chosen)
			cover(open, best)
			chosen = append(chosen, best)
		}
	}
	return chosen
}

func cover(open map[pair]bool, c cell) {
	for _, p := range c.pairs() {
		delete(open, p)
	}
}

// best returns the cell in which the most open pairs meet; of several the one
// whose factors were chosen least, so that the table fills evenly.
func best(cells []cell, open map[pair]bool, chosen []cell) (best cell) {
	uses := map[string]int{}
	for _, c := range chosen {
		for _, f := range c.factors() {
			uses[f]++
		}
	}
	most, least := 0, 0
	for _, c := range cells {
		n, used := 0, 0
		for _, p := range c.pairs() {
			if open[p] {
				n++
			}
		}
		for _, f := range c.factors() {
			used += uses[f]
		}
		if n > most || n == most && used < least {
			best, most, least = c, n, used
		}
	}
	return best
}

// passable are the cells without a limitation.
func passable(all []cell) (list []cell) {
	for _, c := range all {
		if limitationOf(c) == nil {
			list = append(list, c)
		}
	}
	return list
}

// observable are the cells that can be run.
func observable(all []cell) (list []cell) {
	for _, c := range all {
		if limitationOf(c).runs() {
			list = append(list, c)
		}
	}
	return list
}

func TestPairwise(t *testing.T) {
	t.Parallel()
	all := wholeMatrix()
	if want := len(clients) * 3 * 6 * 6; len(all) != want {
		t.Fatalf("the matrix has %d cells, want %d", len(all), want)
	}
	chosen := pairwise(all)
	met, passed := map[pair]bool{}, map[pair]bool{}
	for _, c := range chosen {
		for _, p := range c.pairs() {
			met[p] = true
			passed[p] = passed[p] || limitationOf(c) == nil
		}
	}
	for _, c := range all {
		for _, p := range c.pairs() {
			switch {
			case limitationOf(c) == nil && !passed[p]:
				t.Errorf("no chosen cell that passes has %v", p)
			case limitationOf(c).runs() && !met[p]:
				t.Errorf("no chosen cell has %v", p)
			}
		}
	}
	if len(chosen) > 70 {
		t.Errorf("%d cells were chosen; a test of every pair should be short", len(chosen))
	}
	t.Logf("%d cells of %d", len(chosen), len(all))
}
