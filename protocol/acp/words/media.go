package words

import (
	"path/filepath"
	"strings"
)

// mediaTypes are the types of attachments by extension. They are not asked of the
// machine, as package mime does: two machines say audio/wav and audio/x-wav of one
// file, and a run is to be the same on both.
var mediaTypes = map[string]string{
	".aac":  "audio/aac",
	".avif": "image/avif",
	".bmp":  "image/bmp",
	".css":  "text/css",
	".csv":  "text/csv",
	".flac": "audio/flac",
	".gif":  "image/gif",
	".htm":  "text/html",
	".html": "text/html",
	".jpeg": "image/jpeg",
	".jpg":  "image/jpeg",
	".js":   "text/javascript",
	".json": "application/json",
	".m4a":  "audio/mp4",
	".md":   "text/markdown",
	".mjs":  "text/javascript",
	".mp3":  "audio/mpeg",
	".ogg":  "audio/ogg",
	".pdf":  "application/pdf",
	".png":  "image/png",
	".svg":  "image/svg+xml",
	".txt":  "text/plain",
	".wav":  "audio/wav",
	".webp": "image/webp",
	".xml":  "application/xml",
	".yaml": "application/yaml",
	".yml":  "application/yaml",
}

// mediaType is the type of a file by its extension, "" if it is none of the above.
func mediaType(name string) string { return mediaTypes[strings.ToLower(filepath.Ext(name))] }
