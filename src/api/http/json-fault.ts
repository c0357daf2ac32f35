const SPACE = /[ \t\n\r]*/y
const WORD = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** Finds the offset at which the text stops being JSON, which JSON.parse often omits. Linear, without recursion. */
export function findFault(text: string): number {
  const open: ('{' | '[')[] = []
  let at = skip(text, 0, SPACE)
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

/** Returns the offset after the closing quote, or the bitwise complement of the offset of the error. */
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
