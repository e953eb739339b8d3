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
export type CommandTable = Readonly<Record<string, CommandEntry>>;

/** A command of an operator, whose flags `operate/` declares. */
async function withOptions(
  file: Promise<CommandFile>,
  options: ServerOptions[keyof ServerOptions],
): Promise<CommandFile> {
  const { command, run } = await file;
  return { command: { ...command, options }, run };
}

const PROFILE_EXAMPLES = [
  'slices-conn profile set lab baseUrl=https://conn.example.org portalUrl=https://portal.example.org authUrl=https://login.example.org',
  `slices-conn profile set lab 'experimentTokenCommand=["slices","experiment","jwt","{experiment}"]'`,
  'slices-conn profile use lab',
  'slices-conn profile show --json | jq .sources',
];

/** The commands that projects and experiments have alike: those before `create`, and those after it. */
function directory(noun: 'project' | 'experiment'): [CommandTable, CommandTable] {
  const a = noun === 'project' ? 'a' : 'an';
  const file = () => import('./directory/directory.ts');
  return [
    {
      list: { summary: `list your ${noun}s`, load: async () => (await file()).listOf(noun) },
      show: { summary: `show ${a} ${noun}`, load: async () => (await file()).showOne(noun) },
    },
    {
      use: {
        summary: `choose the ${noun} for later commands`,
        load: async () => (await file()).useOne(noun),
      },
      token: { summary: `print ${a} ${noun} token`, load: async () => (await file()).tokenOf(noun) },
    },
  ];
}

const [EXPERIMENTS, CHOSEN_EXPERIMENT] = directory('experiment');

const CI_RULES: CommandEntry = {
  summary: 'let CI jobs act as you in an experiment, without a secret',
  commands: {
    add: {
      summary: 'let the jobs of a repository act as you',
      load: async () => (await import('./directory/ci-rules.ts')).add,
    },
    list: {
      summary: 'list whose jobs act as whom',
      load: async () => (await import('./directory/ci-rules.ts')).list,
    },
    remove: {
      summary: 'let them act no more',
      load: async () => (await import('./directory/ci-rules.ts')).remove,
    },
  },
  examples: [
    'slices-conn experiment ci add --github octo/measure --ref refs/heads/main',
    'slices-conn experiment ci add --gitlab lab/measure --ref main',
    'slices-conn experiment ci list',
  ],
};

/** All commands, under their headings in help (cli/README.md, "Commands"). */
export const COMMANDS: Readonly<Record<string, CommandTable>> = {
  'Reservations:': {
    reserve: {
      summary: 'book a link between two sites',
      load: () => import('./reservation/reserve.ts'),
    },
    run: { summary: 'book a link for as long as a command runs', load: () => import('./reservation/run.ts') },
    list: { summary: "list the experiment's reservations", load: () => import('./reservation/list.ts') },
    show: { summary: 'show a reservation, verified', load: () => import('./reservation/show.ts') },
    update: {
      summary: 'change the bandwidth, the period or the name of a reservation',
      load: () => import('./reservation/update.ts'),
    },
    delete: { summary: 'delete reservations', load: () => import('./reservation/delete.ts') },
    watch: {
      summary: 'show what happens to reservations, as it happens',
      load: () => import('./reservation/watch.ts'),
    },
    plan: { summary: 'say what apply would do, and whether it fits', load: () => import('./plan/plan.ts') },
    apply: {
      summary: 'create, update and delete reservations as a plan file says, all or none',
      load: () => import('./plan/apply.ts'),
    },
    availability: {
      summary: 'show how much of a link is free, and when a reservation can start',
      load: () => import('./availability/availability.ts'),
    },
    sites: {
      summary: 'list the sites with their links, or the routes between two of them',
      load: () => import('./sites/sites.ts'),
    },
    vlan: {
      summary: 'configure the network devices of a server for a reservation',
      load: () => import('./vlan/vlan.ts'),
    },
    probe: {
      summary: 'say why nothing comes through a reserved link',
      load: () => import('./probe/probe.ts'),
    },
  },
  'Login and experiments:': {
    login: {
      summary: 'log in, with a code that is entered in a browser',
      load: () => import('./login/login.ts'),
    },
    logout: { summary: 'end the session and forget it', load: () => import('./login/logout.ts') },
    status: {
      summary: 'show who is logged in where, and for how long',
      load: () => import('./login/status.ts'),
    },
    user: {
      summary: 'show who is logged in; get the access token for other tools; list and end logins',
      commands: {
        show: {
          summary: 'show your name, id and roles',
          load: async () => (await import('./user/user.ts')).show,
        },
        token: {
          summary: 'print the access token',
          load: async () => (await import('./user/user.ts')).token,
        },
        sessions: {
          summary: 'list your logins on all machines, and end them',
          usual: 'list',
          commands: {
            list: {
              summary: 'list your logins that have not ended',
              load: async () => (await import('./user/sessions.ts')).list,
            },
            revoke: {
              summary: 'end a login, such as the one of a CI job',
              load: async () => (await import('./user/sessions.ts')).revoke,
            },
          },
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
        ...EXPERIMENTS,
        create: {
          summary: 'create an experiment, which you lead',
          load: async () => (await import('./directory/directory.ts')).create,
        },
        ...CHOSEN_EXPERIMENT,
        ci: CI_RULES,
      },
      examples: [
        'slices-conn experiment create throughput-1 --end +30d',
        'slices-conn experiment use throughput-1',
        'slices-conn experiment token --json | jq .claims',
      ],
    },
    project: {
      summary: 'list, show and choose projects; get a project token',
      commands: Object.assign({}, ...directory('project')),
      examples: [
        'slices-conn project list',
        'slices-conn project use demo',
        'slices-conn project token --json | jq .claims',
      ],
    },
  },
  'Tokens:': {
    verify: {
      summary: 'verify a signed reservation, or any other token',
      load: () => import('./verify/verify.ts'),
    },
    token: {
      summary: 'look into tokens; issue your own',
      commands: {
        inspect: {
          summary: 'show what a token claims, without verifying it',
          load: async () => (await import('./token/token.ts')).inspect,
        },
        issue: {
          summary: 'sign a token with your own key (ES256)',
          load: async () => (await import('./token/token.ts')).issue,
        },
        keygen: {
          summary: 'make a key pair: key.json (private) and jwks.json (public)',
          load: async () => (await import('./token/token.ts')).keygen,
        },
      },
      examples: [
        'slices-conn token keygen --out keys',
        'slices-conn token issue --key keys/key.json --issuer https://svc.example.org --sub robot --claim admin=true',
        'slices-conn token issue --key keys/key.json --issuer https://svc.example.org | slices-conn verify --jwks keys/jwks.json --issuer https://svc.example.org',
      ],
    },
  },
  'Server:': {
    serve: {
      summary: 'run the reference server: identity provider, portal, connectivity service',
      load: ({ serve }) => withOptions(import('./serve/serve.ts'), serve),
      commands: {
        'rotate-keys': {
          summary: 'give the servers on a database new signing keys',
          load: ({ rotateKeys }) => withOptions(import('./serve/rotate-keys.ts'), rotateKeys),
        },
        backup: {
          summary: "copy a server's data to a file, while it runs",
          load: ({ backup }) => withOptions(import('./serve/backup.ts'), backup),
        },
        audit: {
          summary: 'who created, updated and deleted what on a server, and why not',
          load: ({ audit }) => withOptions(import('./serve/audit.ts'), audit),
        },
      },
    },
  },
  'Setup:': {
    profile: {
      summary: 'list, show, choose and change profiles: which services to use',
      about:
        'A profile says which services to use, and how. These commands send nothing to a service.\nThe built-in profiles are local (slices-conn serve on this machine), offline (the built-in server) and slices.',
      commands: {
        list: {
          summary: 'list the profiles; the one in use is marked',
          load: async () => (await import('./profile/profile.ts')).list,
        },
        show: {
          summary: 'show every key of a profile, and where its value comes from',
          load: async () => (await import('./profile/profile.ts')).show,
        },
        use: {
          summary: 'choose the profile for later commands',
          load: async () => (await import('./profile/profile.ts')).use,
        },
        set: {
          summary: 'set keys of a profile, or make a new one',
          load: async () => (await import('./profile/profile.ts')).set,
          examples: PROFILE_EXAMPLES,
        },
        remove: {
          summary: 'remove what you have set of a profile',
          load: async () => (await import('./profile/profile.ts')).remove,
        },
      },
      examples: PROFILE_EXAMPLES,
    },
    completion: {
      summary: 'print the script that completes words in your shell',
      load: () => import('./completion/completion.ts'),
    },
  },
};

/** Commands that help does not show. */
export const HIDDEN: CommandTable = {
  whoami: {
    summary: 'show your name, id and roles, as user show does',
    load: async () => (await import('./user/user.ts')).show,
  },
  version: {
    summary: 'print the version',
    load: async () => ({
      command: {},
      run: ({ env: { version }, output }) => output.result({ version }, () => `v${version}\n`),
    }),
  },
  [GUARDIAN]: {
    summary: 'delete the reservation of a run that was killed',
    load: () => import('./reservation/guardian.ts'),
  },
};
