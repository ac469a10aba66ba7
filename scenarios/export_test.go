package scenarios

// Silence is silence, for its test.
var Silence = silence
