// Package lists makes lists of lists and sequences.
package lists

import (
	"iter"
	"slices"
	"strings"
)

// Map returns what f makes of each element; nil if there is none.
func Map[T, U any](list []T, f func(T) U) (all []U) {
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

// Flat returns what f makes of each element, all in one list.
func Flat[T, U any](list []T, f func(T) []U) (all []U) {
	for _, x := range list {
		all = append(all, f(x)...)
	}
	return all
}

// Text returns what text makes of each of a list, one behind the other.
func Text[T any](list []T, text func(T) string) string { return strings.Join(Map(list, text), "") }

// Collect is Map for a sequence.
func Collect[T, U any](seq iter.Seq[T], f func(T) U) (all []U) {
	for x := range seq {
		all = append(all, f(x))
	}
	return all
}

// Where returns the elements that fit; nil if none does.
func Where[T any](list []T, fits func(T) bool) []T { return Having(slices.Values(list), fits) }

// Having is Where for a sequence.
func Having[T any](seq iter.Seq[T], fits func(T) bool) (all []T) {
	for x := range seq {
		if fits(x) {
			all = append(all, x)
		}
	}
	return all
}

// Any reports whether an element of a sequence fits.
func Any[T any](seq iter.Seq[T], fits func(T) bool) bool {
	for x := range seq {
		if fits(x) {
			return true
		}
	}
	return false
}

// Set returns the set of the elements.
func Set[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, x := range list {
		set[x] = true
	}
	return set
}

// With returns a list with those of more that it does not hold already.
func With[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// Find returns the first element that fits.
func Find[T any](list []T, fits func(T) bool) (first T, ok bool) {
	for _, x := range list {
		if fits(x) {
			return x, true
		}
	}
	return first, false
}

// First is Find for elements of which none is zero.
func First[T any](list []T, fits func(T) bool) T {
	first, _ := Find(list, fits)
	return first
}

// Count returns how many elements fit.
func Count[T any](list []T, fits func(T) bool) int { return len(Where(list, fits)) }
