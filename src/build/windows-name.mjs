// JavaScript, with its types beside it: those of resedit would bring a browser's into the whole program.
import { NtExecutable, NtExecutableResource, Resource } from 'resedit';

export function withOwnName(node, { version, description }) {
  const program = NtExecutable.from(node, { ignoreCert: true });
  const resources = NtExecutableResource.from(program);
  const [about] = Resource.VersionInfo.fromEntries(resources.entries);
  if (about === undefined) throw new Error('the Node.js for Windows has no version');
  const numbers = version.split('.').map(Number);
  about.setFileVersion(...numbers);
  about.setProductVersion(...numbers);
  for (const language of about.getAllLanguagesForStringValues()) {
    about.removeAllStringValues(language);
    about.setStringValues(language, {
      FileDescription: description,
      FileVersion: version,
      InternalName: 'slices-conn',
      OriginalFilename: 'slices-conn.exe',
      ProductName: 'slices-conn',
      ProductVersion: version,
    });
  }
  about.outputToResourceEntries(resources.entries);
  resources.outputResource(program);
  return new Uint8Array(program.generate());
}
