/** Writes a command in any notation, so that tests can check that the scanner reads it back. */
export interface CommandToWrite {
  type: string
  fields: Readonly<Record<string, string>>
  /** The field that an element's body fills. */
  body?: string
}

export function encodeCommand(
  { type, fields, body }: CommandToWrite,
  notation: 'modern' | 'legacy' | 'json',
): string {
  switch (notation) {
    case 'modern':
      return encodeModern(type, fields, body)
    case 'legacy':
      return encodeLegacy(type, fields)
    case 'json':
      // An escaped `<` cannot begin a tag.
      return JSON.stringify({ orc_command: { type, ...fields } }).replaceAll('<', '\\u003c')
  }
}

const IN_ATTRIBUTE = /[&<"\t\n\r]/g
/** Tags and references; fences and our own markers, which would hide the closing tag; the space around the text. */
const IN_TEXT = /[&<]|(?<!`)`(?=``)|(?<!~)~(?=~~)|\[(?=(?:END )?ORCH)|^\s+|\s+$/g

function encodeModern(type: string, fields: Readonly<Record<string, string>>, body?: string): string {
  const attributes = Object.entries(fields)
    .filter(([name]) => name !== body)
    .map(([name, value]) => ` ${name}="${encodeReferences(value, IN_ATTRIBUTE)}"`)
  const text = body === undefined ? undefined : fields[body]
  const content = text === undefined || text === '' ? '' : `\n${encodeReferences(text, IN_TEXT)}\n`
  return `<orc-command name="${type}"${attributes.join('')}>${content}</orc-command>`
}

function encodeLegacy(type: string, fields: Readonly<Record<string, string>>): string {
  const children = Object.entries(fields).map(
    ([name, value]) => `  <${name}>${encodeReferences(value, IN_TEXT)}</${name}>\n`,
  )
  return `<orc-command type="${type}">\n${children.join('')}</orc-command>`
}

const NAMED: Record<string, string> = { '<': 'lt', '>': 'gt', '&': 'amp', '"': 'quot', "'": 'apos' }

function encodeReferences(text: string, pattern: RegExp): string {
  return text.replace(pattern, (match) =>
    Array.from(match, (character) => `&${NAMED[character] ?? `#${character.codePointAt(0)}`};`).join(''),
  )
}
