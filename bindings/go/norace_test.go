//go:build !race

package fletching_test

const raceEnabled = false
