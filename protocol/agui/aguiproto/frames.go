package aguiproto

import (
	"encoding/binary"
	"mime"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// MediaType is the content type of a stream in the binary form.
const MediaType = "application/vnd.ag-ui.event+proto"

// Prefix is the number of bytes before each message. They have the length of the message.
const Prefix = 4

// Length returns the length of a message, given the bytes before the message.
func Length(prefix [Prefix]byte) int64 { return int64(binary.BigEndian.Uint32(prefix[:])) }

// Framed returns a message with its length before it, as in a stream.
func Framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// Admitted reports whether an Accept header allows the binary form: the most specific range that includes the form
// must have a quality above 0.
func Admitted(accept string) bool {
	closest, admitted := -1, false
	for one := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(one)
		at := strings.Index(" */* application/* "+MediaType+" ", " "+kind+" ")
		if err != nil || at < 0 {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			quality = 1
		}
		if at > closest {
			closest, admitted = at, quality > 0
		}
	}
	return admitted
}

// Begins reports whether a file looks like a captured stream in the binary form. Such a file begins with a length and
// the tag of an event. The first byte of the length is 0, with which no text begins.
func Begins(file []byte) bool {
	if len(file) <= Prefix || file[0] != 0 || Length([Prefix]byte(file)) < 2 {
		return false
	}
	n, t, k := protowire.ConsumeTag(file[Prefix:])
	return k > 0 && t == protowire.BytesType && known().arms[n] != nil
}
