import type { CommandDeclaration, CommandFile } from './command.ts';
import type { ServerOptions } from './serve/server.ts';

/** The hidden command that is the guardian of a `run`. */
export const GUARDIAN = '__guardian';

/** A command, or a noun with commands below it. */
export interface CommandEntry extends Pick<CommandDeclaration, 'about' | 'examples'> {
  summary: string;
  /** Loads its file; only the command that runs, or whose help is printed, is loaded. Undefined for a noun alone. */
  load?: (server: ServerOptions) => Promise<CommandFile>;
  /** The commands below it, by name. */
  commands?: CommandTable;
  /** The command below it that runs where none is named. */
  usual?: string;
}

/** Commands by their names. */
type CommandTable = Readonly<Record<string, CommandEntry>>;

/** A command by its file. */
const command = (summary: string, load: () => Promise<CommandFile>): CommandEntry => ({ summary, load });

/** A command of an operator, whose flags `operate/` declares. */
const operated = (
  summary: string,
  name: keyof ServerOptions,
  load: () => Promise<CommandFile>,
): CommandEntry => ({
  summary,
  load: async (options) => {
    const { command, run } = await load();
    return { command: { ...command, options: options[name] }, run };
  },
});

/** Commands that share a file, which exports each under its name. */
function verbs<Verb extends string>(
  load: () => Promise<NoInfer<Record<Verb, CommandFile>>>,
  summaries: Readonly<Record<Verb, string>>,
): Record<Verb, CommandEntry> {
  const entries = (Object.entries(summaries) as [Verb, string][]).map(([verb, summary]) => {
    return [verb, command(summary, async () => (await load())[verb])];
  });
  return Object.fromEntries(entries);
}

const PROFILE_EXAMPLES = [
  'slices-conn profile set lab baseUrl=https://conn.example.org portalUrl=https://portal.example.org authUrl=https://login.example.org',
  `slices-conn profile set lab 'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]'`,
  'slices-conn profile use lab',
  'slices-conn profile show --json | jq .sources',
];

const PROFILE = verbs(() => import('./profile/profile.ts'), {
  list: 'list the profiles; the one in use is marked',
  show: 'show every key of a profile, and where its value comes from',
  use: 'choose the profile for later commands',
  set: 'set keys of a profile, or make a new one',
  remove: 'remove what you have set of a profile',
});

const USER = verbs(() => import('./user/user.ts'), {
  show: 'show your name, id and roles',
  token: 'print the access token',
});

const EXPERIMENT = verbs(async () => (await import('./directory/directory.ts')).experiment, {
  list: 'list your experiments',
  show: 'show an experiment',
  create: 'create an experiment, which you lead',
  use: 'choose the experiment for later commands',
  token: 'print an experiment token',
});

/** All commands, under their headings in help (cli/README.md, "Commands"). */
export const COMMANDS: Readonly<Record<string, CommandTable>> = {
  'Reservations:': {
    reserve: command('book a link between two sites', () => import('./reservation/reserve.ts')),
    run: command('book a link for as long as a command runs', () => import('./reservation/run.ts')),
    list: command("list the experiment's reservations", () => import('./reservation/list.ts')),
    show: command('show a reservation, verified', () => import('./reservation/show.ts')),
    update: command(
      'change the bandwidth, the period or the name of a reservation',
      () => import('./reservation/update.ts'),
    ),
    delete: command('delete reservations', () => import('./reservation/delete.ts')),
    watch: command(
      'show what happens to reservations, as it happens',
      () => import('./reservation/watch.ts'),
    ),
    ...verbs(() => import('./plan/plan.ts'), {
      plan: 'say what apply would do, and whether it fits',
      apply: 'create, update and delete reservations as a plan file says, all or none',
    }),
    availability: command(
      'show how much of a link is free, and when a reservation can start',
      () => import('./availability/availability.ts'),
    ),
    sites: command(
      'list the sites with their links, or the routes between two of them',
      () => import('./sites/sites.ts'),
    ),
    vlan: command(
      'configure the network devices of a server for a reservation',
      () => import('./vlan/vlan.ts'),
    ),
    probe: command('say why nothing comes through a reserved link', () => import('./probe/probe.ts')),
  },
  'Login and experiments:': {
    login: command('log in, with a code that is entered in a browser', () => import('./login/login.ts')),
    logout: command('end the session and forget it', () => import('./login/logout.ts')),
    status: command('show who is logged in where, and for how long', () => import('./login/status.ts')),
    user: {
      summary: 'show who is logged in; get the access token for other tools; list and end logins',
      commands: {
        ...USER,
        sessions: {
          summary: 'list your logins on all machines, and end them',
          usual: 'list',
          commands: verbs(() => import('./user/sessions.ts'), {
            list: 'list your logins that have not ended',
            revoke: 'end a login, such as the one of a CI job',
          }),
          examples: ['slices-conn user sessions', 'slices-conn user sessions revoke 3f9a0c17'],
        },
      },
      examples: [
        'slices-conn user show',
        'slices-conn user token --json | jq .claims',
        'slices-conn user sessions',
        'curl -H "Authorization: Bearer $(slices-conn user token)" http://127.0.0.1:4280/portal/apis/projects/v1alpha1/projects/',
      ],
    },
    experiment: {
      summary: 'list, show, create and choose experiments; get an experiment token; let CI jobs in',
      commands: {
        ...EXPERIMENT,
        ci: {
          summary: 'let CI jobs act as you in an experiment, without a secret',
          commands: verbs(() => import('./directory/ci-rules.ts'), {
            add: 'let the jobs of a repository act as you',
            list: 'list whose jobs act as whom',
            remove: 'let them act no more',
          }),
          examples: [
            'slices-conn experiment ci add --github octo/measure --ref refs/heads/main',
            'slices-conn experiment ci add --gitlab lab/measure --ref main',
            'slices-conn experiment ci list',
          ],
        },
      },
      examples: [
        'slices-conn experiment create throughput-1 --end +30d',
        'slices-conn experiment use throughput-1',
        'slices-conn experiment token --json | jq .claims',
      ],
    },
    project: {
      summary: 'list, show and choose projects; get a project token',
      commands: verbs(async () => (await import('./directory/directory.ts')).project, {
        list: 'list your projects',
        show: 'show a project',
        use: 'choose the project for later commands',
        token: 'print a project token',
      }),
      examples: [
        'slices-conn project list',
        'slices-conn project use demo',
        'slices-conn project token --json | jq .claims',
      ],
    },
  },
  'Tokens:': {
    verify: command('verify a signed reservation, or any other token', () => import('./verify/verify.ts')),
    token: {
      summary: 'look into tokens; issue your own',
      commands: verbs(() => import('./token/token.ts'), {
        inspect: 'show what a token claims, without verifying it',
        issue: 'sign a token with your own key (ES256)',
        keygen: 'make a key pair: key.json (private) and jwks.json (public)',
      }),
      examples: [
        'slices-conn token keygen --out keys',
        'slices-conn token issue --key keys/key.json --issuer https://svc.example.org --sub robot --claim admin=true',
        'slices-conn token issue --key keys/key.json --issuer https://svc.example.org | slices-conn verify --jwks keys/jwks.json --issuer https://svc.example.org',
      ],
    },
  },
  'Server:': {
    serve: {
      ...operated(
        'run the reference server: identity provider, portal, connectivity service',
        'serve',
        () => import('./serve/serve.ts'),
      ),
      commands: {
        'rotate-keys': operated(
          'give the servers on a database new signing keys',
          'rotateKeys',
          () => import('./serve/rotate-keys.ts'),
        ),
        backup: operated(
          "copy a server's data to a file, while it runs",
          'backup',
          () => import('./serve/backup.ts'),
        ),
        audit: operated(
          'who created, updated and deleted what on a server, and why not',
          'audit',
          () => import('./serve/audit.ts'),
        ),
      },
    },
  },
  'Setup:': {
    profile: {
      summary: 'list, show, choose and change profiles: which services to use',
      about:
        'A profile says which services to use, and how. These commands send nothing to a service.\nThe built-in profiles are local (slices-conn serve on this machine), offline (the built-in server) and slices.',
      commands: { ...PROFILE, set: { ...PROFILE.set, examples: PROFILE_EXAMPLES } },
      examples: PROFILE_EXAMPLES,
    },
    completion: command(
      'print the script that completes words in your shell',
      () => import('./completion/completion.ts'),
    ),
  },
};

/** Commands that help does not show. */
export const HIDDEN: CommandTable = {
  whoami: { ...USER.show, summary: 'show your name, id and roles, as user show does' },
  version: command('print the version', async () => ({
    command: {},
    run: ({ env: { version }, output }) => output.result({ version }, () => `v${version}\n`),
  })),
  [GUARDIAN]: command(
    'delete the reservation of a run that was killed',
    () => import('./reservation/guardian.ts'),
  ),
};
