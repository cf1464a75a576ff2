//go:build race

package fletching_test

const raceEnabled = true // sync.Pool then drops returned values at random
