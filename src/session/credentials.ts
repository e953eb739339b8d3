import { existsSync, lstatSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../contract/failure.ts';
import { fileFault, privateFolder } from './folders.ts';
import type { Profile } from './profiles.ts';

const Entry = v.object({
  accessToken: v.string(),
  refreshToken: v.optional(v.string()),
  /** When it was had and until when it is valid, in milliseconds. */
  issuedAt: v.number(),
  expiresAt: v.optional(v.number()),
});
/** What a login left: the tokens, and how long the first is good. */
export type StoredCredentials = v.InferOutput<typeof Entry>;

const CredentialFile = v.object({ version: v.literal(1), entries: v.record(v.string(), Entry) });
type CredentialFile = v.InferOutput<typeof CredentialFile>;

/**
 * The logins of this user, one for each issuer, client and pair of addresses, so that no token is ever sent to another
 * place than it was obtained for (CLI.md, "Files"; HOSTILE.md 3).
 */
export class Credentials {
  readonly #folder: string;

  /** @param folder the state folder */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Where they are kept. */
  get path(): string {
    return join(this.#folder, 'credentials.json');
  }

  /** @throws Failure `state_unusable` */
  read(profile: Profile): StoredCredentials | undefined {
    return this.#load().entries[nameOf(profile)];
  }

  /** Keeps a login, or forgets it. @throws Failure `state_unusable` */
  write(profile: Profile, credentials: StoredCredentials | undefined): void {
    const { entries } = this.#load();
    const { [nameOf(profile)]: _previous, ...others } = entries;
    const content: CredentialFile = {
      version: 1,
      entries: credentials === undefined ? others : { ...others, [nameOf(profile)]: credentials },
    };
    privateFolder(this.#folder);
    const draft = `${this.path}.${process.pid}.tmp`;
    try {
      writeFileSync(draft, `${JSON.stringify(content)}\n`, { mode: 0o600, flag: 'wx', flush: true });
      renameSync(draft, this.path);
    } catch (cause) {
      rmSync(draft, { force: true });
      throw this.#unusable(cause instanceof Error ? cause.message : String(cause));
    }
  }

  #load(): CredentialFile {
    // Whoever could enter or replace the folder could replace what is in it.
    if (existsSync(this.#folder)) privateFolder(this.#folder);
    if (!existsSync(this.path)) return { version: 1, entries: {} };
    const found = lstatSync(this.path);
    const fault = fileFault(found);
    if (fault !== undefined) throw this.#unusable(fault);
    if ((found.mode & 0o077) !== 0) throw this.#unusable('Others could read it. Make it private: chmod 600.');
    let value: unknown;
    try {
      value = JSON.parse(readFileSync(this.path, 'utf8'));
    } catch {
      throw this.#unusable('It is not JSON.');
    }
    const result = v.safeParse(CredentialFile, value);
    if (result.success) return result.output;
    throw this.#unusable('It is damaged, or of a newer version of this program.');
  }

  #unusable(why: string): Failure {
    return new Failure('state_unusable', `The file ${this.path} can't be used.`, {
      why,
      fix: 'Mend it, or move it away and log in again.',
    });
  }
}

function nameOf({ authUrl, clientId, baseUrl, portalUrl }: Profile): string {
  return [authUrl, clientId, baseUrl, portalUrl].join(' ');
}
