//go:build !race

// SPDX-License-Identifier: Apache-2.0

package fletching_test

const raceEnabled = false
