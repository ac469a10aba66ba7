package scenarios

import "context"

// mostOfEach is how many entries of a list a block is played for: agents offer models by the
// hundred.
const mostOfEach = 20

func eachCommand() *Command {
	return &Command{
		Name: "each", Group: "structure", Args: "LIST of REF [CONDITION…] as NAME", Captures: true, Blocks: 1,
		Summary: "play a block for each entry of a list that fulfils conditions",
		Detail: "LIST, REF and the conditions are those of pick; in the block $NAME.path is a field of the\n" +
			"entry. The list is the one that is there when the line is played. Of a long list only the\n" +
			"first 20 entries are taken, and of an empty one none: needs pick in front of it skips then.",
		Compile: compileEach,
	}
}

func compileEach(l *Line) Step {
	p := pickerOf(l, 0)
	l.DeclareName(l.Alias)
	steps := l.Body(0)
	return func(ctx context.Context, b *Branch) error {
		entries, _, err := p.all(b)
		if err != nil {
			return err
		}
		for _, entry := range entries[:min(len(entries), mostOfEach)] {
			b.run.pick(l.Alias, entry)
			if err := b.play(ctx, steps); err != nil {
				return err
			}
		}
		return nil
	}
}
