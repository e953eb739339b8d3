import { writeFileSync } from 'node:fs';
import { commandReference } from './command-reference.ts';

writeFileSync(new URL('../cli/REFERENCE.md', import.meta.url), commandReference());
