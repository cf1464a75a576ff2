package tiny

import "testing"

func TestTiny(t *testing.T) {
	number, visited := 7, 0
	values := map[string]*int{"a": &number}
	found, err := find(values, "a")
	_, empty := find(values, "")
	_, unknown := find(values, "b")
	count := each([]int{4, 5}, func(value int) { visited = visited*10 + value })
	for name, ok := range map[string]bool{
		"clamp":   clamp(1, 2) == 2 && clamp(3, 2) == 3,
		"both":    both(true, false) && !both(true, true) && !both(false, false) && !both(false, true),
		"sum":     sum([]int{2, 3, 4}) == 6,
		"find":    found == &number && err == nil,
		"errors":  empty != nil && empty.Error() == "empty" && unknown != nil && unknown.Error() == "unknown",
		"swapped": difference(5, 3) == 2 && swapped(5, 3) == 2,
		"next":    next(1) == 2,
		"each":    count == 10 && visited == 45,
	} {
		if !ok {
			t.Error(name)
		}
	}
}
