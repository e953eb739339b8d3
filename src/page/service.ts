import type { Alternative, FreePart, Limit } from '../contract/problems.ts';

/** A link between two sites. It has no direction. */
export interface Link {
  site1: string;
  site2: string;
  /** Capacity in Mbps. */
  bandwidth: number;
}

/** A half-open time `[start, end)` that is looked at, in milliseconds since the Unix epoch. */
export interface Window {
  start: number;
  end: number;
}

/** A part of a window, and what of a link is free in it. */
export interface Column extends Window {
  /** Mbps that are free throughout the part. */
  free: number;
  /** Mbps that are free at best, for some of the part. */
  freeMax: number;
  /** The fewest free VLANs at any instant of the part. */
  vlans: number;
}

/** The tags of one end of a reservation. */
export interface EndTags {
  site: string;
  sTag: number;
  cTag: number;
}

/** A reservation of the chosen experiment. */
export interface Own extends Window {
  id: string;
  name?: string;
  site1: string;
  site2: string;
  /** Mbps. */
  bandwidth: number;
  /** User id of who created it. */
  createdBy: string;
  /** The end at `site1` first. */
  tags: readonly [EndTags, EndTags];
}

/** An experiment that the user takes part in. */
export interface Experiment {
  id: string;
  name: string;
  project: { id: string; name: string };
  /** As the portal says it; see `readRole` of contract/roles.ts. */
  role: string;
  /** RFC 3339. */
  expires_at: string;
}

/** The public facts of a server: the reply of `GET ui/api/network`. */
export interface NetworkFacts {
  /** The operator's name for the server. */
  name: string | null;
  base_url: string;
  /** Whether a login is possible here. */
  login: boolean;
  sites: readonly { name: string; place: readonly [longitude: number, latitude: number] | null }[];
  links: readonly Link[];
}

/** Who is logged in: the reply of `GET ui/api/session`. */
export interface Session {
  user: { id: string; name: string } | null;
  experiments: readonly Experiment[];
}

/** What a refused reply says. */
export interface RefusalFacts {
  status: number;
  /** A problem code of contract/problems.ts, or empty. */
  code: string;
  /** Sentences of the service. */
  messages: readonly string[];
  limits: readonly Limit[];
  free: readonly FreePart[];
  alternatives: readonly Alternative[];
}
