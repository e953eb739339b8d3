import type { Link } from '../service.ts';

/** Options of {@link createMap}. */
export interface MapOptions {
  sites: readonly { name: string; place: readonly [longitude: number, latitude: number] | null }[];
  links: readonly Link[];
  /** Called when a link is chosen, by click or key. */
  onSelect(link: Link): void;
}

/** The network as a picture: sites, and links with their use now. */
export interface NetworkMap {
  readonly element: HTMLElement;
  /** @param share of the link's capacity that is in use now, 0 to 1; null where it is not known */
  setUse(link: Link, share: number | null): void;
  /** Marks one link, and no other; null marks none. It does not call `onSelect`. */
  select(link: Link | null): void;
}

/** Makes the map. */
export function createMap({ sites, links, onSelect }: MapOptions): NetworkMap {
  const element = document.createElement('div');
  element.className = 'map';
  element.textContent = `${sites.length} sites, ${links.length} links`;
  return { element, setUse: () => {}, select: (link) => link && void onSelect };
}
