/** The part of a JSON schema that says which keys a file may have. */
export interface Node {
  description?: string
  type?: string
  properties?: Record<string, Node>
  additionalProperties?: Node | boolean
  items?: Node
  anyOf?: Node[]
}

/** Every key that can be written, with the schema of its value. */
export function keysOf(node: Node, path = ''): [string, Node][] {
  const own = Object.entries(node.properties ?? {}).flatMap(([key, value]): [string, Node][] => [
    [`${path}.${key}`, value],
    ...keysOf(value, `${path}.${key}`),
  ])
  const inner = [node.items, node.additionalProperties, ...(node.anyOf ?? [])]
  return [...own, ...inner.flatMap((form) => (typeof form === 'object' ? keysOf(form, path) : []))]
}

export const describes = (node: Node): boolean =>
  node.description !== undefined || (node.anyOf ?? []).some(describes)
