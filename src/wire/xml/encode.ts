/** Command → element, so that reading it gives the same fields again, whatever they contain. */
import { encodeReferences } from './entities.ts'

const IN_ATTRIBUTE = /[&<"\t\n\r]/g
/** Tags and references; fences and the service's own markers, which would hide the closing tag; the space around. */
const IN_TEXT = /[&<]|(?<!`)`(?=``)|(?<!~)~(?=~~)|\[(?=(?:END )?ORCH)|^\s+|\s+$/g

/** `body` is the field that goes between the tags. */
export function encodeModern(type: string, fields: Readonly<Record<string, string>>, body?: string): string {
  const attributes = Object.entries(fields)
    .filter(([name]) => name !== body)
    .map(([name, value]) => ` ${name}="${encodeReferences(value, IN_ATTRIBUTE)}"`)
  const text = body === undefined ? undefined : fields[body]
  const content = text === undefined || text === '' ? '' : `\n${encodeReferences(text, IN_TEXT)}\n`
  return `<orc-command name="${type}"${attributes.join('')}>${content}</orc-command>`
}

export function encodeLegacy(type: string, fields: Readonly<Record<string, string>>): string {
  const children = Object.entries(fields).map(
    ([name, value]) => `  <${name}>${encodeReferences(value, IN_TEXT)}</${name}>\n`,
  )
  return `<orc-command type="${type}">\n${children.join('')}</orc-command>`
}
