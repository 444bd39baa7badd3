//go:build !race

package model

const slow = false
