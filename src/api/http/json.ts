import { AppError } from '../../base/errors.ts'

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const offset = findFault(text)
    const before = text.slice(0, offset)
    const line = before.split('\n').length
    const column = offset - before.lastIndexOf('\n')
    throw new AppError('INVALID_REQUEST', `The body is not valid JSON, at line ${line}, column ${column}`, {
      hint:
        text.trim() === ''
          ? 'The body is empty; send {"type": …} or an array of such objects.'
          : `Near: ${JSON.stringify(text.slice(Math.max(0, offset - 20), offset + 20))}`,
      cause: error,
    })
  }
}

const SPACE = /[ \t\n\r]*/y
const WORD = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** Where the text stops being JSON. JSON.parse itself often does not say. Linear, and without recursion. */
function findFault(text: string): number {
  const open: ('{' | '[')[] = []
  let at = skip(text, 0, SPACE)
  /** What may come next. */
  let next: 'value' | 'value or ]' | 'key' | 'key or }' | 'comma or end' = 'value'
  while (at < text.length) {
    const character = text[at]!
    if (next === 'comma or end') {
      const inside = open.at(-1)
      if (inside === undefined) return at
      if (character === ',') next = inside === '{' ? 'key' : 'value'
      else if (character === (inside === '{' ? '}' : ']')) open.pop()
      else return at
      at = skip(text, at + 1, SPACE)
      continue
    }
    if ((next === 'key or }' && character === '}') || (next === 'value or ]' && character === ']')) {
      open.pop()
      next = 'comma or end'
      at = skip(text, at + 1, SPACE)
      continue
    }
    if (next === 'key' || next === 'key or }') {
      if (character !== '"') return at
      const end = endOfString(text, at)
      if (end < 0) return ~end
      at = skip(text, end, SPACE)
      if (text[at] !== ':') return at
      at = skip(text, at + 1, SPACE)
      next = 'value'
      continue
    }
    if (character === '{' || character === '[') {
      open.push(character)
      next = character === '{' ? 'key or }' : 'value or ]'
      at = skip(text, at + 1, SPACE)
      continue
    }
    const end = character === '"' ? endOfString(text, at) : skip(text, at, WORD)
    if (end < 0) return ~end
    if (end === at) return at
    at = skip(text, end, SPACE)
    next = 'comma or end'
  }
  return at
}

function skip(text: string, at: number, pattern: RegExp): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

/** The place after the closing quote, or the complement of where the string goes wrong. */
function endOfString(text: string, opening: number): number {
  let at = opening + 1
  while (at < text.length) {
    const character = text[at]!
    if (character === '"') return at + 1
    if (character < ' ') return ~at
    if (character !== '\\') at += 1
    else {
      const end = skip(text, at, ESCAPE)
      if (end === at) return ~at
      at = end
    }
  }
  return ~at
}
