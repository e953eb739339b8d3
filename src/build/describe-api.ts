import { readFileSync, writeFileSync } from 'node:fs';
import { describeApi } from '../contract/openapi.ts';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const target = new URL('../contract/openapi.json', import.meta.url);
writeFileSync(target, `${JSON.stringify(describeApi(String(manifest.version)), null, 2)}\n`);
