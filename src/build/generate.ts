import { readFileSync, writeFileSync } from 'node:fs';
import { describeApi } from '../contract/openapi.ts';
import { descriptionText } from '../server/docs/description.ts';
import { commandReference } from './command-reference.ts';
import { MANIFEST } from './packages.ts';
import { structurePicture } from './structure.ts';

const file = (path: string): URL => new URL(path, import.meta.url);
const description = describeApi(MANIFEST.version);
writeFileSync(file('../contract/openapi.json'), `${descriptionText(description, 2)}\n`);
writeFileSync(file('../cli/REFERENCE.md'), await commandReference());

const map = readFileSync(file('../README.md'), 'utf8');
const drawn = map.replace(/(```mermaid\n).*?(?=\n```)/s, (_, mark) => mark + structurePicture());
writeFileSync(file('../README.md'), drawn);
