//go:build race

package fletching_test

const raceEnabled = true // then pools drop what is returned to them, at random
