// Package lists has functions that create lists from lists and sequences.
package lists

import (
	"iter"
	"slices"
	"strings"
)

// Map returns the results of calling f for each element; nil if list is empty.
func Map[T, U any](list []T, f func(T) U) (all []U) {
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

// Flat calls f for each element and concatenates the resulting lists.
func Flat[T, U any](list []T, f func(T) []U) (all []U) {
	for _, x := range list {
		all = append(all, f(x)...)
	}
	return all
}

// Text calls text for each element and concatenates the results.
func Text[T any](list []T, text func(T) string) string { return strings.Join(Map(list, text), "") }

// Collect is like Map, but takes a sequence.
func Collect[T, U any](seq iter.Seq[T], f func(T) U) (all []U) {
	for x := range seq {
		all = append(all, f(x))
	}
	return all
}

// Where returns the elements for which fits is true; nil if there are none.
func Where[T any](list []T, fits func(T) bool) []T { return Having(slices.Values(list), fits) }

// Having is like Where, but takes a sequence.
func Having[T any](seq iter.Seq[T], fits func(T) bool) (all []T) {
	for x := range seq {
		if fits(x) {
			all = append(all, x)
		}
	}
	return all
}

// Any reports whether fits is true for at least one element of a sequence.
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

// With appends to list the elements of more that list does not contain yet. It may write to list's spare capacity, as
// append does.
func With[T comparable](list []T, more ...T) []T {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// Find returns the first element for which fits is true. ok is false if there is none.
func Find[T any](list []T, fits func(T) bool) (first T, ok bool) {
	for _, x := range list {
		if fits(x) {
			return x, true
		}
	}
	return first, false
}

// First returns the first element for which fits is true, or the zero value if there is none.
func First[T any](list []T, fits func(T) bool) T {
	first, _ := Find(list, fits)
	return first
}

// Count returns the number of elements for which fits is true.
func Count[T any](list []T, fits func(T) bool) int { return len(Where(list, fits)) }
