import type { IncomingMessage } from 'node:http'
import { brotliDecompressSync, gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'

const DECODERS: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
  deflate: inflateSync,
}

export async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const decode = DECODERS[incoming.headers['content-encoding'] ?? '']
  return (decode ? decode(bytes) : bytes).toString('utf8')
}

/** The key that identifies the agent, wherever the protocol carries it. */
export function agentOf({ headers, url }: IncomingMessage): string | undefined {
  const key =
    headers['x-api-key'] ??
    headers['x-goog-api-key'] ??
    headers.authorization ??
    new URL(url ?? '/', 'http://localhost').searchParams.get('key') ??
    ''
  return /-fake-(.+)$/.exec(String(key))?.[1]
}
