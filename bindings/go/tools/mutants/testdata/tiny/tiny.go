// Package tiny contains one example of each change. Its tests detect all of them.
package tiny

import "errors"

var limit = 3

// Kind is a number with a name.
type Kind int

const first Kind = 1

func clamp(value, least int) int {
	if value < least {
		return least
	}
	return value
}

func both(a, b bool) bool { return a && !b }

func sum(values []int) (total int) {
	for _, value := range values {
		if value == limit {
			continue
		}
		total += value
	}
	return total
}

func find(values map[string]*int, name string) (*int, error) {
	found, known := values[name]
	switch {
	case known:
		return found, nil
	case name == "":
		return nil, errors.New("empty")
	}
	return nil, errors.New("unknown")
}

func difference(a, b int) int { return a - b }

func swapped(a, b int) int { return difference(a, b) }

func next(kind Kind) Kind { return kind + first }

func each(values []int, visit func(int)) (visited int) {
	defer func() { visited++ }()
	for i := 0; i < len(values); i++ {
		visit(values[i])
		visited += values[i]
	}
	return visited
}
