/** The inverse of the scanner: a command in any notation, for prompts, examples and tests. */
import type { Notation } from './codec.ts'
import { encodeJson } from './json/encode.ts'
import { encodeLegacy, encodeModern } from './xml/encode.ts'

export interface Sayable {
  type: string
  fields: Readonly<Record<string, string>>
  /** The field that an element's body fills. */
  body?: string
}

export function encode({ type, fields, body }: Sayable, notation: Notation): string {
  switch (notation) {
    case 'modern':
      return encodeModern(type, fields, body)
    case 'legacy':
      return encodeLegacy(type, fields)
    case 'json':
      return encodeJson(type, fields)
  }
}
