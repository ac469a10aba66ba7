// Writes the types of the official schemas of AG-UI, as JSON by name: members are [name, with ? if it may be left out; what it
// is], forms are the tags by which a type is told apart.
import * as schemas from '@ag-ui/core/schemas';
import { toJSONSchema } from 'zod';

const kind = (p) => (p.const !== undefined ? p.const : p.enum ? p.enum.join('|') : p.anyOf || p.oneOf ? 'one of' : p.type || 'any');
const types = {};
for (const [name, schema] of Object.entries(schemas)) {
  if (!name.endsWith('Schema')) continue;
  const is = toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const members = (of) => Object.entries(of.properties || {}).map(([n, p]) => [n + (of.required?.includes(n) ? '' : '?'), kind(p)]);
  const forms = (is.oneOf || []).map((form) => members(form).filter(([, k]) => k === (form.properties?.type || form.properties?.role || form.properties?.op)?.const).map(([, k]) => k)[0]);
  types[name.replace(/Schema$/, '')] = { members: members(is), forms };
}
console.log(JSON.stringify(types));
