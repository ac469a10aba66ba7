package logs

import (
	"strconv"
	"strings"
	"time"

	"github.com/acp-test/acp-test/internal/lazy"
	"github.com/acp-test/acp-test/wire"
)

var (
	dated = lazy.Regexp(`(\d{4})[-/](\d\d)[-/](\d\d)[T ]+(\d\d:\d\d:\d\d)(?:[.,](\d+))?\s*(Z|[+-]\d\d:?\d\d)?`)
	daily = lazy.Regexp(`(?:^|[^\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?`)
	epoch = lazy.Regexp(`^\W*(\d{10}(?:\.\d+)?|\d{13})(?:\D|$)`)
)

const day = 24 * 60 * 60 * 1000 // in ms

// clock reads the time in the text before a message, in ms.
func (r *reader) clock(text string) (ms float64, ok bool) {
	if m := dated().FindStringSubmatch(text); m != nil {
		zone := m[6]
		if zone == "" {
			zone = "Z"
		} else if zone != "Z" && !strings.Contains(zone, ":") {
			zone = zone[:3] + ":" + zone[3:]
		}
		at, err := time.Parse(time.RFC3339, m[1]+"-"+m[2]+"-"+m[3]+"T"+m[4]+zone)
		return float64(at.UnixMilli()) + fraction(m[5]), err == nil
	}
	if m := epoch().FindStringSubmatch(text); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		return scaled(n), err == nil
	}
	if m := daily().FindStringSubmatch(text); m != nil {
		h, _ := strconv.Atoi(m[1])
		min, _ := strconv.Atoi(m[2])
		s, _ := strconv.Atoi(m[3])
		ms := float64(((h*60+min)*60+s)*1000) + fraction(m[4])
		if ms+day/2 < r.last {
			r.days += day // past midnight
		}
		r.last = ms
		return r.days + ms, true
	}
	return 0, false
}

// fraction is the part of a second behind the point, in ms.
func fraction(digits string) float64 {
	n, err := strconv.ParseFloat("0."+digits+"0", 64)
	if err != nil {
		return 0
	}
	return n * 1000
}

// instant reads the time that the member of an object tells, in ms.
func instant(v wire.Value) (ms float64, ok bool) {
	if n, ok := v.Float(); ok {
		return scaled(n), true
	}
	s := v.Str()
	if s == "" || len(s) > 64 {
		return 0, false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return scaled(n), true
	}
	return (&reader{}).clock(s)
}

// scaled is a number as ms: seconds, microseconds and nanoseconds since 1970 are told by
// their size, any other number is ms.
func scaled(n float64) float64 {
	switch {
	case n >= 1e17:
		return n / 1e6
	case n >= 1e14:
		return n / 1e3
	case n >= 1e9 && n < 1e11:
		return n * 1e3
	}
	return n
}
