// Package lists makes lists from lists and sequences.
package lists

import (
	"iter"
	"slices"
	"strings"
)

// Map returns the results of f for each element; nil if there are none.
func Map[T, U any](list []T, f func(T) U) (all []U) {
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

// Flat returns the results of f for each element, all in one list.
func Flat[T, U any](list []T, f func(T) []U) (all []U) {
	for _, x := range list {
		all = append(all, f(x)...)
	}
	return all
}

// Text returns the joined results of text for each element.
func Text[T any](list []T, text func(T) string) string { return strings.Join(Map(list, text), "") }

// Collect is Map for a sequence.
func Collect[T, U any](seq iter.Seq[T], f func(T) U) (all []U) {
	for x := range seq {
		all = append(all, f(x))
	}
	return all
}

// Where returns the elements for which fits is true; nil if there are none.
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

// Any reports whether fits is true for an element of a sequence.
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

// With returns a list with those elements of more added that it lacks.
func With[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// Find returns the first element for which fits is true.
func Find[T any](list []T, fits func(T) bool) (first T, ok bool) {
	for _, x := range list {
		if fits(x) {
			return x, true
		}
	}
	return first, false
}

// First returns the first element for which fits is true, the zero value if there
// is none.
func First[T any](list []T, fits func(T) bool) T {
	first, _ := Find(list, fits)
	return first
}

// Count returns for how many elements fits is true.
func Count[T any](list []T, fits func(T) bool) int { return len(Where(list, fits)) }
