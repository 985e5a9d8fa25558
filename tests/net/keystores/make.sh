#!/bin/sh
# Writes the keystores of this folder with the keytool of Java 17: ./make.sh
set -e
rm -f *.jks *.p12 *.jceks
key="-genkeypair -keyalg EC -groupname secp256r1 -validity 36500 -alias broker -ext san=dns:localhost -noprompt"
name="CN=localhost, OU=web, O=Example"
keytool $key -dname "$name" -storetype JKS -keystore key.jks -storepass store-secret -keypass key-secret 2> /dev/null
keytool $key -dname "$name" -storetype JKS -keystore two.jks -storepass store-secret -keypass store-secret 2> /dev/null
keytool -genkeypair -keyalg EC -groupname secp256r1 -validity 36500 -alias other -dname "CN=other" -storetype JKS \
    -keystore two.jks -storepass store-secret -keypass store-secret 2> /dev/null
keytool $key -dname "$name" -storetype JCEKS -keystore key.jceks -storepass store-secret 2> /dev/null
keytool $key -dname "$name" -storetype PKCS12 -keystore key.p12 -storepass store-secret
keytool -J-Dkeystore.pkcs12.legacy $key -dname "$name" -storetype PKCS12 -keystore old.p12 -storepass store-secret
keytool -exportcert -alias broker -keystore key.p12 -storepass store-secret -file broker.der 2> /dev/null
for type in JKS PKCS12; do
    keytool -importcert -noprompt -alias "ca-é" -file broker.der -storetype $type -keystore trust.$type \
        -storepass trust-secret 2> /dev/null
done
mv trust.JKS trust.jks && mv trust.PKCS12 trust.p12 && rm broker.der
