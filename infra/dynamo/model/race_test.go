//go:build race

package model

// slow: the race detector makes an exploration, in which nothing runs side by
// side, several times as long.
const slow = true
