// Makes pages of the guide for a browser, as a forge does: docs.mjs FROM TO
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { marked } from 'marked';

const [from, to] = process.argv.slice(2);
const style = 'body{font:16px/1.5 sans-serif;margin:1em;overflow-wrap:break-word} img{max-width:100%} pre,table{display:block;overflow-x:auto}';
marked.use({ renderer: { code: ({ text }) => `<pre tabindex="0"><code>${text.replace(/[&<]/g, c => `&#${c.charCodeAt(0)};`)}</code></pre>` } });
for (const file of readdirSync(from).filter(name => name.endsWith('.md'))) {
  const body = marked.parse(readFileSync(path.join(from, file), 'utf8'));
  // What can be scrolled is reached by keys.
  const main = body.replaceAll('<table>', '<table tabindex="0">');
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${path.basename(file, '.md')}</title><style>${style}</style><main>${main}</main></html>`;
  writeFileSync(path.join(to, file.replace(/md$/, 'html')), page);
}
