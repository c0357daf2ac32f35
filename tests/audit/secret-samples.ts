/*
 * Something that looks like a credential for every rule, put together at run time so that no secret scanner
 * stumbles over this repository. None of them opens anything.
 */
export interface SecretSample {
  rule: string
  /** The text around it that a rule may need. */
  before?: string
  secret: string
  after?: string
}

const LETTERS = 'aBcDeFgHiJkLmNoPqRsTuVwXyZ'
const HEX = '0123456789abcdef'
const ALPHANUMERIC = `a1B2c3D4e5F6g7H8i9J0${LETTERS}`

function fill(length: number, alphabet = ALPHANUMERIC): string {
  return alphabet.repeat(Math.ceil(length / alphabet.length)).slice(0, length)
}

function pem(kind: string, body: string): string {
  const dashes = '-'.repeat(5)
  return `${dashes}BEGIN ${kind}PRIVATE KEY${dashes}\n${body}\n${dashes}END ${kind}PRIVATE KEY${dashes}`
}

const pkcs8 = pem('', `MI${fill(62)}\n${fill(64)}\n${fill(40)}==`)
const serviceAccount = JSON.stringify({
  type: 'service_account',
  private_key_id: fill(40, HEX),
  private_key: pkcs8,
})
// Such a token is the base64 of a JSON object, of a length that leaves the last brace to the last, padded group.
const account = JSON.stringify({ secretKey: fill(92), a: '' })
const accountToken = Buffer.from(account).toString('base64')

export const SECRET_SAMPLES: readonly SecretSample[] = [
  { rule: 'aws', before: 'AWS_SECRET_ACCESS_KEY=', secret: fill(40) },
  {
    rule: 'aws',
    before: '"secretAccessKey" : "'.replace('secretAccess', 'secret_access_'),
    secret: fill(40),
    after: '"',
  },
  { rule: 'aws', secret: `AK${'IA'}${fill(16, 'Q2W3E4R5T6Y7U8I9')}` },
  { rule: 'gcp', secret: serviceAccount },
  { rule: 'privatekey', secret: pkcs8 },
  { rule: 'privatekey', secret: pem('OPENSSH ', `b3BlbnNzaC1rZXktdjE${fill(120)}`) },
  { rule: 'privatekey', before: 'key: ', secret: pem('RSA ', `MI${fill(150)}`).replaceAll('\n', '\\n') },
  { rule: 'npm', secret: `npm${'_'}${fill(36)}` },
  { rule: 'npm', before: '//registry.example/:_auth' + 'Token=', secret: fill(30, HEX) },
  { rule: 'npm', before: 'https://', secret: `${fill(30)}.x`, after: ':x-oauth-' + 'basic@github.com/' },
  { rule: 'basicauth', secret: `https://${'alice'}:${fill(12)}@git.example.com` },
  { rule: 'slack', secret: `xox${'b'}-${fill(12, '123456789')}-${fill(24)}` },
  { rule: 'slack', secret: `https://hooks.${'slack'}.com/services/T${fill(8)}/B${fill(8)}/${fill(24)}` },
  { rule: 'sendgrid', secret: `SG${'.'}${fill(22)}.${fill(43)}` },
  { rule: 'shopify', secret: `shp${'at'}_${fill(32, HEX)}` },
  { rule: 'stripe', secret: `sk${'_live'}_${fill(24)}` },
  { rule: 'stripe', secret: `rk${'_test'}_${fill(99)}` },
  { rule: 'github', secret: `gh${'p'}_${fill(36)}` },
  { rule: 'github', secret: `github${'_pat'}_${fill(82)}` },
  { rule: 'github', secret: `gh${'s'}_${fill(6, '123456')}_${fill(40)}.${fill(200)}.${fill(86)}` },
  { rule: 'gitlab', secret: `gl${'pat'}-${fill(20)}` },
  { rule: 'grafana', secret: `gl${'c'}_${fill(60)}==` },
  { rule: 'grafana', secret: `gl${'sa'}_${fill(32)}_${fill(8, HEX)}` },
  { rule: 'openai', secret: `sk${'-'}${fill(20)}T3Blbk${'FJ'}${fill(20)}` },
  { rule: 'openai', secret: `sk${'-proj'}-${fill(74)}T3Blbk${'FJ'}${fill(74)}` },
  { rule: 'anthropic', secret: `sk${'-ant'}-api03-${fill(93)}AA` },
  { rule: 'groq', secret: `gs${'k'}_${fill(52)}` },
  { rule: 'huggingface', secret: `h${'f'}_${fill(34, LETTERS)}` },
  { rule: 'linear', secret: `lin${'_api'}_${fill(40)}` },
  { rule: 'notion', secret: `nt${'n'}_${fill(11, '123456789')}${fill(35)}` },
  { rule: '1password', secret: `op${'s'}_${accountToken}` },
  { rule: 'database-connection-string', secret: `mongodb+srv://app:${fill(16)}@db.example.net/orders` },
  { rule: 'database-connection-string', secret: `MySQL://app:${fill(16)}@db.example.net:3306/orders` },
  { rule: 'database-connection-string', secret: `postgres://app:${fill(16)}@db.example.net/orders?ssl=on` },
  { rule: 'hashicorp-vault', secret: `hv${'s'}.${fill(95)}` },
  { rule: 'hashicorp-vault', secret: `hv${'b'}.${fill(140)}` },
  { rule: 'hashicorp-vault', secret: `hv${'r'}.${fill(95)}` },
  { rule: 'vercel', secret: `vc${'p'}_${fill(24)}` },
  { rule: 'databricks', secret: `da${'pi'}${fill(32, HEX)}-2` },
  { rule: 'docker', secret: `dckr${'_pat'}_${fill(27)}` },
  { rule: 'figma', secret: `fig${'d'}_${fill(43)}` },
  { rule: 'cloudflare', secret: `cf${'ut'}_${fill(40)}${fill(8, HEX)}` },
  { rule: 'tailscale', secret: `ts${'key'}-auth-${fill(12)}-${fill(32)}` },
  { rule: 'orchub-token', secret: `or${'ct'}_${fill(43)}` },
]

/** Rules of the preset that don't look for secrets. */
export const RULES_WITHOUT_SECRETS = ['filter-comments']

export function sampleText(sample: SecretSample): string {
  return `${sample.before ?? ''}${sample.secret}${sample.after ?? ''}`
}
