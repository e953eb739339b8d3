import type { PackageFacts } from './packages.ts';

/** The parts of a Node.js with their versions, as in `process.versions`; `node` is its own. */
export type Runtime = Readonly<Record<string, string | undefined>>;

/** Interfaces of Node.js to add-ons: numbers, and no software. */
const INTERFACES: ReadonlySet<string> = new Set(['modules', 'napi', 'unicode', 'cldr', 'tz']);

/**
 * The parts of the executables, in CycloneDX 1.6 (ECMA-424): each bundled package, and each Node.js with the libraries
 * inside it. It has no time and no serial number, so that two builds of one commit give the same bytes.
 *
 * @param own this package
 * @param packages those whose code or files are in the executables
 */
export function billOfMaterials(
  own: PackageFacts,
  packages: readonly PackageFacts[],
  runtimes: readonly Runtime[],
): object {
  const parts = packages.map((facts) => ({ type: 'library', ...componentOf(facts) }));
  const engines = runtimes.map(runtimeComponent);
  const components = [...parts, ...engines];
  const { purl } = componentOf(own);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', ...componentOf(own) } },
    components,
    dependencies: [{ ref: purl, dependsOn: components.map((component) => component['bom-ref']) }],
  };
}

function componentOf({ name, version, license }: PackageFacts) {
  const [, group, short = name] = /^(@[^/]+)\/(.+)$/.exec(name) ?? [];
  // Package URL: the group's @ is written as %40.
  const purl = `pkg:npm/${group === undefined ? '' : `${encodeURIComponent(group)}/`}${short}@${version}`;
  return {
    'bom-ref': purl,
    group,
    name: short,
    version,
    purl,
    licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
  };
}

function runtimeComponent({ node = '', ...parts }: Runtime) {
  const purl = `pkg:generic/node@${node}`;
  return {
    type: 'framework',
    'bom-ref': purl,
    name: 'node',
    version: node,
    purl,
    licenses: [{ license: { id: 'MIT' } }],
    components: Object.entries(parts)
      .filter(([name, version]) => version && !INTERFACES.has(name))
      .map(([name, version]) => ({
        type: 'library',
        'bom-ref': `${purl}#${name}`,
        name,
        version,
      })),
  };
}
