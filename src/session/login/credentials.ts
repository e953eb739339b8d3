import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { MINUTE } from '../../contract/durations.ts';
import { LAST_INSTANT } from '../../contract/instants.ts';
import { readJson } from '../../contract/json.ts';
import { isTokenText, Secret } from '../../contract/secret.ts';
import { privateFolder, unusableFile } from '../../files/private.ts';
import { readPrivateFile, removeDrafts, removeFile, takeRoom, writePrivateFile } from '../../files/whole.ts';
import type { Profile, UnderLock } from '../profiles/profiles.ts';

const KeptSecret = v.pipe(
  v.string(),
  v.check(isTokenText),
  v.transform((text) => new Secret(text)),
);

const Entry = v.object({
  version: v.literal(1),
  /** The services that the login is for: a file that was moved or copied is refused. */
  services: v.strictObject({
    authUrl: v.exactOptional(v.string()),
    clientId: v.string(),
    baseUrl: v.string(),
    portalUrl: v.exactOptional(v.string()),
    /** Where the profile names one beside authUrl. */
    issuer: v.exactOptional(v.string()),
  }),
  accessToken: KeptSecret,
  refreshToken: v.optional(KeptSecret),
  /** When the access token was issued and until when it is valid, in milliseconds. */
  issuedAt: v.number(),
  // Version 0.1.0 wrote any number that a provider sent: a number that is too large counts as unknown.
  expiresAt: v.fallback(v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(LAST_INSTANT))), undefined),
  /** When the person logged in, in milliseconds: tells one login from the next. */
  loggedInAt: v.number(),
  /** Tokens for projects and experiments that the portal gave this user, by their ids. */
  portalTokens: v.optional(v.record(v.string(), KeptSecret), {}),
});

/** The tokens of a login, and when they were issued and expire. Times in milliseconds. */
export type StoredCredentials = Omit<v.InferOutput<typeof Entry>, 'version' | 'services'>;

/**
 * Whether a token must be replaced before it is used: less than a minute is left, or less than a tenth of its
 * lifetime where that is shorter.
 *
 * | lifetime | replaced when there is left less than |
 * |---|---|
 * | 1 h | 1 min |
 * | 5 min | 30 s |
 * | unknown | never |
 *
 * @param token when it was issued and until when it is valid, in milliseconds
 * @param now milliseconds
 */
export function isAlmostOver(
  { issuedAt, expiresAt }: { issuedAt: number; expiresAt?: number },
  now: number,
): boolean {
  if (expiresAt === undefined) return false;
  return expiresAt - now < Math.min(MINUTE, (expiresAt - issuedAt) / 10);
}

/**
 * Returns the new login; undefined removes it. Before it sends a token that can be sent once only, it takes room on the disk
 * for what comes back.
 */
type CredentialsChange<Next> = (
  current: StoredCredentials | undefined,
  takeRoom: () => void,
) => Promise<Next> | Next;

/**
 * The login at one issuer, as one client, for one pair of addresses, so that no token is ever sent to another
 * place than it was obtained for (cli/README.md, "Files"; THREATS.md 3). A private file of its own.
 */
export class Credentials {
  readonly #folder: string;
  readonly #services: v.InferOutput<typeof Entry>['services'];
  readonly #name: string;
  readonly #underLock: UnderLock;
  /** The login as this process read or wrote it last; undefined before the first time. */
  #known: { credentials: StoredCredentials | undefined } | undefined;

  /** @param stateFolder the state folder */
  constructor(stateFolder: string, profile: Profile, underLock: UnderLock) {
    const { authUrl, clientId, baseUrl, portalUrl, issuer } = profile;
    this.#folder = join(stateFolder, 'credentials');
    this.#services = { authUrl, clientId, baseUrl, portalUrl, issuer };
    this.#name = createHash('sha256')
      .update(JSON.stringify(Object.values(this.#services)))
      .digest('hex')
      .slice(0, 32);
    this.#underLock = underLock;
  }

  /** Where they are kept. */
  get path(): string {
    return join(this.#folder, `${this.#name}.json`);
  }

  /**
   * The login as this process read or wrote it last, so that a command reads the file once. Another process
   * may have changed it since: {@link change} reads the file again, under the lock.
   *
   * @throws Failure `state_unusable`
   */
  known(): StoredCredentials | undefined {
    this.#known ??= { credentials: this.read() };
    return this.#known.credentials;
  }

  /** The login as the file holds it now. @throws Failure `state_unusable` */
  read(): StoredCredentials | undefined {
    // A user who could write to the folder could replace the file.
    if (existsSync(this.#folder)) this.#makeFolder();
    const text = readPrivateFile(this.path);
    if (text === undefined) return undefined;
    const reading = readJson(text);
    if (!reading.ok) throw unusableFile(this.path, 'It is not JSON.');
    const result = v.safeParse(Entry, reading.value);
    if (!result.success) {
      throw unusableFile(this.path, 'It is damaged, or of a newer version of this program.');
    }
    const { version: _version, services, ...stored } = result.output;
    const own = this.#services;
    const same = (Object.keys(own) as (keyof typeof own)[]).every((key) => services[key] === own[key]);
    if (!same) throw unusableFile(this.path, 'It is the login to other services.');
    return stored;
  }

  /**
   * The login, renewed where there is none or it is almost over: by one process at a time, each looking first at what the one
   * before it left.
   *
   * @param renew as of {@link change}
   */
  async renewed<Next extends StoredCredentials | undefined>(
    now: () => number,
    renew: CredentialsChange<Next>,
  ): Promise<StoredCredentials | Next> {
    const isGood = (stored: StoredCredentials | undefined): stored is StoredCredentials =>
      stored !== undefined && !isAlmostOver(stored, now());
    const known = this.known();
    return isGood(known)
      ? known
      : this.change<StoredCredentials | Next>((current, takeRoom) =>
          isGood(current) ? current : renew(current, takeRoom),
        );
  }

  /**
   * Changes the login while no other process can: what `work` is given was read under the lock, and what it
   * returns is on disk before the lock is released (THREATS.md 13).
   *
   * @throws Failure `state_unusable`; whatever `work` throws, and then nothing was changed
   */
  async change<Next extends StoredCredentials | undefined>(work: CredentialsChange<Next>): Promise<Next> {
    this.#makeFolder();
    return this.#underLock(join(this.#folder, `${this.#name}.lock`), async () => {
      const current = this.read();
      removeDrafts(this.path);
      let room: ReturnType<typeof takeRoom> | undefined;
      try {
        const next = await work(current, () => {
          room ??= takeRoom(this.path);
        });
        if (next === undefined) removeFile(this.path);
        else if (next !== current) this.#write(next, room?.fill);
        this.#known = { credentials: next };
        return next;
      } finally {
        room?.leave();
      }
    });
  }

  #write(credentials: StoredCredentials, write = (text: string) => writePrivateFile(this.path, text)): void {
    const { accessToken, refreshToken, issuedAt, expiresAt, loggedInAt, portalTokens } = credentials;
    const entry: v.InferInput<typeof Entry> = {
      version: 1,
      services: this.#services,
      accessToken: accessToken.reveal(),
      refreshToken: refreshToken?.reveal(),
      issuedAt,
      expiresAt,
      loggedInAt,
      portalTokens: Object.fromEntries(
        Object.entries(portalTokens).map(([id, token]) => [id, token.reveal()]),
      ),
    };
    write(`${JSON.stringify(entry)}\n`);
  }

  #makeFolder(): void {
    // The folder above first: it decides who can replace this one.
    privateFolder(join(this.#folder, '..'));
    privateFolder(this.#folder);
  }
}
