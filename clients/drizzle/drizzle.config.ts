const { DATABASE_URL, SCHEMA, TABLES, VIA } = process.env;
export default {
  dialect: 'postgresql',
  dbCredentials: { url: DATABASE_URL },
  schemaFilter: ['insta5'],
  tablesFilter: [TABLES ?? '*'],
  schema: `./${SCHEMA ?? 'schema'}.ts`,
  out: `./out/${VIA}`,
};
